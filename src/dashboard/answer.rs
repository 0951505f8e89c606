//! The answer on a page: its headline with the forecast, the claim, one error and the buttons.

use maud::{Markup, html};

use super::forecast::{FAR_DAYS, When};
use super::layout::{counted, enumerated, hour, moment, of_experiments, with_code, words};
use super::view::View;
use crate::service::answer::{Action, ActionKind, Answer, State};
use crate::service::reports::claim::ClaimKind;
use rankduel_engine::experiment_spec::ConcludeAt;

/// The card of the answer, without its tiles.
pub(crate) fn say(view: &View) -> Markup {
    let Answer { state, headline, doubts, since, what_next, .. } = &view.answer;
    html! {
        p.small.quiet { (words(*state).1) " since " (moment(*since, view.now)) }
        h2 #say { (with_code(headline)) (date(view)) }
        p.lede { (paragraph(view)) }
        p.error.small {
            (error(view))
            @for doubt in doubts { " " strong { (with_code(doubt)) } }
        }
        div.do {
            p { (with_code(&what_next.sentence)) (limits(view)) }
            @for (path, title, is_main) in buttons(view) {
                a.button.main[is_main] href=(path) { (title) }
            }
        }
    }
}

/// The forecast beside a leader.
fn date(view: &View) -> Markup {
    html! { @if view.answer.state == State::Leader { " " @match view.when() {
        When::About(at, _) => { "We will know about " (moment(at, view.now)) "." }
        When::Far => { "A lead this small takes more than " (FAR_DAYS) " days to show." }
        When::Waits | When::Unknown(_) => "There is no date yet.",
    } } }
}

/// The claim of a result; before there is one, the rivals that are left, and what waits.
fn paragraph(view: &View) -> Markup {
    let open: Vec<_> = view.open_rivals().iter().map(|of| view.short(&of.rival)).collect();
    html! {
        @if view.has_changed() {
            "What is said below of " (view.short(&view.verdict.leader)) " holds for the time before the change."
        } @else if view.is_decided() {
            // a stronger sentence about the only rival stands above
            @if !(is_better(view) && view.active().len() == 2) { (with_code(&view.verdict.claim)) }
        }
        @else if view.has_ended() && view.waiting().is_none() {
            @if view.verdict.rests_on.excluded_units > 0 { "Without the answers of the excluded units, the" } @else { "The" }
            " evidence is not enough for a result."
        } @else if view.has_compared() { @match &open[..] {
            [closest, _, ..] => { "Not ruled out: " (enumerated(&open)) ". The evidence is least against " (closest) "." }
            [one] => { "Not ruled out: " (one) "." }
            [] => {}
        } }
        @if let Some(waiting) = view.waiting() {
            " " (counted(waiting.answers, "answer is", "answers are")) " in and "
            @if waiting.answers == 1 { "waits" } @else { "wait" }
            ", because other pages of that time can still get theirs; "
            @if view.answer.state == State::Waiting { "the result can come at " } @else { "the first of them count at " }
            (hour(waiting.next_count_ms, view.now)) "."
        }
    }
}

/// Whether the ranker that the answer is about is proven to be better than the control.
fn is_better(view: &View) -> bool {
    let proven = view.verdict.control.as_ref().and_then(|control| control.proven);
    proven == Some(ClaimKind::Better)
}

/// The error of what is said; under an alarm that makes every number doubtful, none holds.
fn error(view: &View) -> Markup {
    if view.is_untrusted() {
        return html! { "No error holds while answers are missing for some rankers more often than for others." };
    }
    let verdict = &view.verdict;
    let error = view.error();
    let beats_each = verdict.condorcet && view.active().len() > 2 && verdict.winners.len() == 1;
    let is_better = is_better(view);
    let segments = view.fold.segments_error.filter(|_| view.answer.state == State::Segment);
    // the other claims that stand above it, each with its error
    let own = 1.0 - verdict.confidence;
    let others = [
        beats_each.then_some(("that the winner beats each of the others", own)),
        is_better.then_some(("the comparison with what you run now", view.fold.control_error)),
        segments.map(|error| ("that it loses in a segment", error)),
    ];
    let others: Vec<_> = others.into_iter().flatten().collect();
    let all = own + others.iter().map(|(_, error)| error).sum::<f64>();
    let names: Vec<_> = others.iter().map(|(claim, _)| html! { (claim) }).collect();
    html! {
        @if view.has_changed() {
            "The result was wrong in at most " (error) " experiments."
        } @else if view.is_decided() {
            "This result is wrong in at most " (error) " experiments"
            @if !names.is_empty() { "; counting " (enumerated(&names)) ", in at most " (of_experiments(all.min(1.0))) }
            "."
            @if let Some(remark) = verdict.rests_on.remark { " " (with_code(remark)) }
        } @else if view.has_ended() {
            "A result would have been wrong in at most " (error) " experiments."
        } @else if view.has_compared() {
            @if view.answer.state == State::Waiting { "A result will be wrong in at most " (error) " experiments. Answers that wait are no result yet." }
            @else { "Rivals are ruled out by mistake in at most " (error) " experiments." }
        }
        @if is_better && !view.is_decided() {
            " That a ranker is better than what you run now is wrong in at most " (of_experiments(view.fold.control_error)) "."
        }
    }
}

/// The limits of an experiment that ends by itself.
fn limits(view: &View) -> Markup {
    let is_open = view.verdict.concludes_by_itself && !view.is_over() && view.runs();
    let at = view.loaded.spec.conclude_at.filter(|_| is_open).unwrap_or_default();
    let ConcludeAt { min_days, max_days, max_duels, .. } = at;
    html! { @if is_open {
        @match (at.control && view.verdict.control.is_some(), at.segments && view.verdict.segments.is_some()) {
            _ if view.is_untrusted() => {}
            (true, true) => " The end waits for the comparison with what you run now, and for the segments.",
            (true, false) => " The end waits for the comparison with what you run now.",
            (false, true) => " The end waits for the segments.",
            (false, false) => {}
        }
        @if let Some(days) = min_days { " It runs for " (super::layout::days(days)) " at least." }
        @if let Some(days) = max_days { " It ends after " (super::layout::days(days)) " at the latest." }
        @if let Some(duels) = max_duels { " It ends after " (counted(duels, "answer", "answers")) " at the latest." }
    } }
}

/// The paths and titles of the actions, and whether each is the one to take.
fn buttons(view: &View) -> Vec<(String, Markup, bool)> {
    let manage = format!("/experiments/{}/manage/", view.record.name);
    let button = |Action { action, ranker }: &Action| {
        let short = ranker.as_deref().map(|id| view.short(id));
        let (path, title) = match action {
            ActionKind::Ship => ("conclude", html! { "Ship " (short.unwrap_or_default()) "…" }),
            ActionKind::Keep => ("conclude", html! { "Keep " (short.unwrap_or_default()) "…" }),
            ActionKind::Stop if view.is_decided() => ("conclude", html! { "Conclude…" }),
            ActionKind::Stop => ("conclude", html! { "Stop…" }),
            ActionKind::Pause => ("pause", html! { "Pause…" }),
            ActionKind::Resume => ("resume", html! { "Resume…" }),
            ActionKind::Retire => ("retire", html! { "Retire " (short.unwrap_or_default()) "…" }),
            ActionKind::Archive => ("archive", html! { "Archive…" }),
            ActionKind::Connect => return ("/docs".into(), html! { "How to connect" }, false),
        };
        let is_main = matches!(action, ActionKind::Ship | ActionKind::Keep);
        let chosen = ranker.as_ref().filter(|_| *action == ActionKind::Retire);
        let chosen = chosen.map_or_else(String::new, |ranker| {
            let ranker: String = form_urlencoded::byte_serialize(ranker.as_bytes()).collect();
            format!("?ranker={ranker}")
        });
        (format!("{manage}{path}{chosen}"), title, is_main)
    };
    let is_allowed =
        |action: &&Action| view.visitor.manages || action.action == ActionKind::Connect;
    view.answer.what_next.actions.iter().filter(is_allowed).map(button).collect()
}
