//! The verdict: the leader, its confidence, and what to do next.

use maud::{Markup, html};

use super::basis;
use super::layout::{fact, number, percent, table, with_code};
use super::view::View;
use crate::service::reports::verdict::VerdictState;
use crate::service::reports::verdict_sentence::error;
use rankduel_store::events::Status;

/// Maximum number of rivals in the table of effects.
const EFFECTS_MAX: usize = 10;

/// The section.
pub(crate) fn section(view: &View) -> Markup {
    let verdict = &view.verdict;
    // what is shown matters more than who leads once the experiment is concluded
    let concluded_on = verdict.concluded.as_ref().and_then(|done| done.winner.as_ref());
    let (label, named) = match (verdict.state, concluded_on) {
        (VerdictState::Decided, _) => ("Winner", Some(&verdict.leader)),
        (_, Some(winner)) => ("Concluded on", Some(winner)),
        (VerdictState::Open, None) => ("Leader", Some(&verdict.leader)),
        (VerdictState::NothingKnown, None) => ("Leader", None),
    };
    let named = named.and_then(|id| verdict.rankers.iter().find(|row| row.id == *id));
    let (class, state) = match (verdict.state, &verdict.concluded) {
        (VerdictState::Decided, _) => ("decided", "decided"),
        (_, Some(_)) => ("archived", "concluded without a verdict"),
        (VerdictState::NothingKnown, None) => ("open", "no data yet"),
        (VerdictState::Open, None) => ("open", "open"),
    };
    html! {
        section.verdict aria-labelledby="verdict-title" {
            h2 #verdict-title { "Verdict " span.badge.(class) { (state) } }
            p.sentence #sentence { (with_code(&verdict.sentence)) }
            p.advice { b { "What to do: " } (advice(view)) }
            dl.facts {
                @if let Some(named) = named {
                    (fact(label, &html! { code { (named.id) } }))
                    @if verdict.winners.is_empty() {
                        (fact("Probability of being best, by a model", &html! { (percent(named.copeland_probability)) }))
                    }
                }
                @if verdict.winners.is_empty() && verdict.concluded.is_none() {
                    (fact("Not ruled out by proof", &html! { span #possible { (verdict.possible.len()) } " of " (view.active().len()) }))
                }
                (fact("Duels answered", &html! { span #duels { (number(verdict.duels)) } }))
                @if verdict.concluded.is_none() { (fact("Pages to the verdict", &html! {
                    @match (&verdict.duels_to_go, &verdict.duels_to_go_reason) {
                        (Some(to_go), _) if to_go.estimate == 0 => { "none" }
                        (Some(to_go), _) => {
                            "about " (number(to_go.estimate)) " "
                            span.quiet {
                                "(" (number(to_go.low)) " to "
                                @if let Some(high) = to_go.high { (number(high)) } @else { "no upper bound" }
                                ")"
                            }
                        }
                        (None, _) => { "unknown" }
                    }
                })) }
                (fact("Wrong verdicts", &html! { "in at most " (error(verdict.confidence)) " of experiments" }))
                (fact("Margin", &html! { (percent(verdict.margin)) }))
            }
            (effects(view))
            @if verdict.concluded.is_none() && verdict.duels_to_go.is_none() && let Some(reason) = &verdict.duels_to_go_reason {
                p.quiet { "Why the number is unknown: " (with_code(reason)) }
            }
            (basis::section(&verdict.rests_on, verdict.winners.first()))
            @if view.loaded.spec.roster_changes.changes() > 0 {
                p.quiet { "The rankers have changed. Only duels since then count for the verdict." }
            }
        }
    }
}

/// How often the winner beats each rival; empty without a verdict.
fn effects(view: &View) -> Markup {
    let verdict = &view.verdict;
    let (Some(winner), true) = (verdict.winners.first(), !verdict.effects.is_empty()) else {
        return Markup::default();
    };
    let shown = &verdict.effects[..verdict.effects.len().min(EFFECTS_MAX)];
    // with added rankers the intervals hold together at twice the error
    let added = view.ids.len() > view.loaded.spec.initial_rankers();
    let joint = (1.0 - verdict.confidence) * if added { 2.0 } else { 1.0 };
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".into(), percent);
    let caption = html! {
        "How often " (winner) " wins"
        @if shown.len() < verdict.effects.len() { ", the " (EFFECTS_MAX) " smallest of " (number(verdict.effects.len() as u64)) }
    };
    let rows = html! { @for effect in shown { tr {
        th scope="row" { (effect.rival) }
        td.number { (rate(effect.estimate)) }
        td.number { (percent(effect.low)) " to " (percent(effect.high)) }
        td.number { (rate(effect.win_rate)) }
        td.number { (number((effect.wins + effect.losses) as u64)) }
    } } };
    html! {
        (table("Effects", &["Against", "#Estimate", "#Interval", "#In the counts", "#Duels"], &caption, &rows))
        p.quiet {
            "The estimate corrects a share above one half, which is too high on average because the verdict came when the counts "
            "looked best. All intervals of pairs together are ever wrong in at most " (error(1.0 - joint)) " of experiments."
        }
    }
}

/// The next step.
fn advice(view: &View) -> Markup {
    let verdict = &view.verdict;
    if view.record.archived_at.is_some() {
        return html! { "Nothing: the experiment is archived." };
    }
    match (view.record.status, verdict.state) {
        (Status::Concluded, _) => html! {
            "Only " @if let Some(winner) = verdict.concluded.as_ref().and_then(|done| done.winner.as_ref()) { code { (winner) } } @else { "the winner" }
            " is shown. "
            @if verdict.winners.is_empty() {
                "Without a verdict, weigh what speaks for it before you make it the default in the search backend."
            } @else { "Make it the default in the search backend, then archive the experiment." }
            @if let Some(other) = other_winner(view) {
                " The verdict is for " code { (other) } ": check whether that is what you want."
            }
        },
        (Status::Paused, _) => {
            html! {
                "The experiment is paused and issues no duels. "
                @if verdict.state == VerdictState::Decided { "More duels would not change the verdict: conclude it." }
                @else { "Resume it to learn more." }
            }
        }
        (_, VerdictState::Decided) if !verdict.rests_on.doubts.is_empty() => html! {
            "Look at the doubt above. If you know that it does not matter here, conclude the experiment: "
            code { "PATCH /v1/experiments/" (view.record.name) " {\"status\": \"concluded\"}" } "."
        },
        (_, VerdictState::Decided) if waits_for_days(view) => html! {
            "Let it run until its least number of days (" code { "min_days" } ") is over. Then it concludes by itself. More duels "
            "will not change the verdict."
        },
        (_, VerdictState::Decided) => html! {
            "Conclude the experiment: "
            code { "PATCH /v1/experiments/" (view.record.name) " {\"status\": \"concluded\"}" }
            ". More duels will not change the verdict."
        },
        (_, VerdictState::NothingKnown) => html! {
            "Request duels with " code { "POST /v1/experiments/" (view.record.name) "/next-duel" } " and send feedback."
        },
        (_, VerdictState::Open) => {
            let pairs = &verdict.deciding_pairs;
            html! {
                "Let it run. "
                @if let Some(first) = pairs.first() {
                    "The verdict depends on "
                    @if verdict.deciding_pairs_total == 1 { "one pair: " } @else {
                        (number(verdict.deciding_pairs_total as u64)) " pairs, first of all "
                    }
                    code { (first.left) } " against " code { (first.right) } "."
                }
                @if verdict.concludes_by_itself { " The experiment concludes by itself at the verdict." }
            }
        }
    }
}

/// The winner of the verdict, if the experiment was concluded on another ranker.
fn other_winner(view: &View) -> Option<&String> {
    let verdict = &view.verdict;
    let on = verdict.concluded.as_ref()?.winner.as_ref()?;
    if verdict.winners.contains(on) { None } else { verdict.winners.first() }
}

/// Whether the experiment has a verdict and may not conclude by itself yet.
fn waits_for_days(view: &View) -> bool {
    let least = view.loaded.spec.conclude_at.and_then(|at| at.min_days);
    view.verdict.concludes_by_itself && least.is_some_and(|days| view.days < days)
}
