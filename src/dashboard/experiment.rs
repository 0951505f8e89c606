//! `/experiments/{name}`: one experiment on a page.

use maud::{Markup, html};

use super::layout::{moment, number, percent, seconds};
use super::view::View;
use super::{heat, history, interleaved, pairs, verdict};
use crate::events::Status;
use crate::store::ExperimentRecord;

/// An experiment's status as a badge.
pub(crate) fn status(record: &ExperimentRecord) -> Markup {
    let (class, text) = match (record.archived_at, record.status) {
        (Some(_), _) => ("archived", "archived"),
        (None, Status::Running) => ("running", "running"),
        (None, Status::Paused) => ("paused", "paused"),
        (None, Status::Concluded) => ("decided", "concluded"),
    };
    html! { span.badge.(class) { (text) } }
}

/// The page.
pub(crate) fn page(view: &View) -> Markup {
    html! {
        h1 { (view.record.name) " " (status(&view.record)) }
        p.quiet {
            (view.active().len()) " rankers"
            @if !view.retired().is_empty() { " (" (view.retired().len()) " retired)" }
            ", policy " code { (view.loaded.spec.policy.kind()) } ", since " (moment(view.record.created_at)) ". "
            "As JSON: "
            @for (index, part) in ["verdict", "standings", "regret", "winners", "statistics", "traffic"].iter().enumerate() {
                @if index > 0 { ", " }
                code { "/v1/experiments/" (view.record.name) "/" (part) }
            }
        }
        (alarms(view))
        (verdict::section(view))
        div.columns {
            (history::cost(view))
            (history::shown(view))
        }
        (traffic(view))
        (heat::section(view))
        (pairs::section(view))
        (interleaved::section(view))
        (rankers(view))
        @if view.batch.is_some() { (batch(view)) }
        (words())
    }
}

fn alarms(view: &View) -> Markup {
    html! {
        @for alarm in &view.alarms {
            div.alarm role="alert" {
                h3 { (alarm.title) }
                p { (alarm.detail) }
                p { b { "Likely cause: " } (ticks(alarm.cause)) }
                p { b { "What to do: " } (ticks(alarm.action)) }
            }
        }
    }
}

/// Text in which every second piece between backticks is code.
pub(crate) fn ticks(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

pub(crate) fn fact(label: &str, value: &Markup) -> Markup {
    html! { div { dt { (label) } dd { (value) } } }
}

fn traffic(view: &View) -> Markup {
    let traffic = &view.traffic;
    let feedback = &traffic.feedback;
    let [left, right] = [view.standings.outcomes.left, view.standings.outcomes.right];
    let time =
        |at: Option<f64>| at.map_or_else(|| "–".to_owned(), |at| format!("≤ {}", seconds(at)));
    html! {
        section aria-labelledby="traffic-title" {
            h2 #traffic-title { "Traffic" }
            p.quiet { "At this server, since " (moment(traffic.since_ms)) "; the sides over the whole log." }
            dl.facts {
                (fact("Duels in flight", &html! { span #in-flight { (number(traffic.in_flight)) } }))
                (fact("Pairs handed out", &html! { (number(traffic.pairs)) }))
                (fact("Answers recorded", &html! { (number(feedback.recorded)) }))
                (fact("Repeats", &html! { (number(feedback.duplicate)) }))
                (fact("Contradictions", &html! { (number(feedback.conflict)) }))
                (fact("Too late", &html! { (number(feedback.expired + feedback.late)) }))
                (fact("Of no duel (orphans)", &html! { (number(feedback.invalid)) }))
                (fact("Never answered", &html! { (number(traffic.unanswered)) }))
                (fact("Half of the answers take", &html! { (time(traffic.delay.p50_seconds)) }))
                (fact("99 % take", &html! { (time(traffic.delay.p99_seconds)) }))
                (fact("Left : right won", &html! {
                    (number(left)) " : " (number(right))
                    @if left + right > 0 { " (" (percent(left as f64 / (left + right) as f64)) " left)" }
                }))
                (fact("Answers come back evenly", &match traffic.even.test {
                    Some(test) if test.p_value < 1e-5 => html! { "no (p = " (format!("{:.0e}", test.p_value)) ")" },
                    Some(test) => html! { "yes (p = " (format!("{:.2}", test.p_value)) ")" },
                    None => html! { "too little to say" },
                }))
            }
        }
    }
}

fn rankers(view: &View) -> Markup {
    let most = view.standings.rankers.iter().map(|row| row.appearances).max().unwrap_or(0).max(1);
    let places: u64 = view.standings.rankers.iter().map(|row| row.appearances).sum();
    html! {
        section aria-labelledby="rankers-title" {
            h2 #rankers-title { "Rankers" }
            div.scroll role="region" aria-labelledby="rankers-title" tabindex="0" {
                table {
                    caption { "The best first; ★ leads" @if !view.retired().is_empty() { "; the retired last" } }
                    thead { tr {
                        th scope="col" { "Ranker" }
                        th.number scope="col" { "Best with probability" }
                        th.number scope="col" { "Beats" }
                        th.number scope="col" { "Mean win rate" }
                        th.number scope="col" { "Wins" }
                        th.number scope="col" { "Losses" }
                        th.number scope="col" { "Ties" }
                        th.number scope="col" { "Shown" }
                        th scope="col" { "Share of all places" }
                    } }
                    tbody {
                        @for &i in &view.order {
                            @let row = &view.standings.rankers[i];
                            @let retired = view.is_retired(i);
                            @let others = (view.active().len() - usize::from(!retired)) as f64;
                            tr {
                                th scope="row" { span.name { (row.id) @if row.leader { span.star { " ★" } span.sr { " (leads)" } } }
                                    @if retired { " " span.badge.archived { "retired" } } }
                                td.number { @if retired { "–" } @else { (percent(view.verdict.rankers[i].copeland_probability)) } }
                                td.number { (format!("{:.0}", row.copeland_score * others)) " of " (others) }
                                td.number { (percent(row.borda_score)) }
                                td.number { (number(row.wins)) }
                                td.number { (number(row.losses)) }
                                td.number { (number(row.ties)) }
                                td.number { (number(row.appearances)) }
                                td {
                                    svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                                        rect.rest x="0" y="3" width="100" height="2" {}
                                        rect x="0" y="0" height="8" width=(format!("{:.1}", 100.0 * row.appearances as f64 / most as f64)) {}
                                    }
                                    span.sr { (percent(row.appearances as f64 / places.max(1) as f64)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn batch(view: &View) -> Markup {
    let Some(batch) = &view.batch else { return Markup::default() };
    let sum = |count: &dyn Fn(&dueling_bandits::BatchPair) -> u32| -> u64 {
        batch.pairs.iter().map(|(pair, _)| u64::from(count(pair))).sum()
    };
    let (needed, answered) = (sum(&|pair| pair.needed), sum(&|pair| pair.answered));
    let in_flight: u64 = batch.pairs.iter().map(|(_, out)| u64::from(*out)).sum();
    html! {
        section aria-labelledby="batch-title" {
            h2 #batch-title { "Batch" }
            @if let Some(number_of) = batch.number {
                p {
                    "Batch " (number_of) @if let Some(at) = batch.opened_at { ", open since " (moment(at)) } ": "
                    b { (number(answered.min(needed))) " of " (number(needed)) } " comparisons of " (number(batch.pairs.len() as u64))
                    " pairs are answered, " (number(in_flight)) " are out."
                }
                progress max=(needed.max(1)) value=(answered.min(needed)) aria-labelledby="batch-title" {
                    (percent(answered as f64 / needed.max(1) as f64))
                }
                p.quiet { "The policy adapts when the batch is complete; until then it hands out the pairs of this batch." }
            } @else {
                p { "The policy has run all its batches and shows its winner." }
            }
        }
    }
}

fn words() -> Markup {
    html! {
        details #words {
            summary { "What the words mean" }
            dl {
                dt { b { "Duel" } }
                dd { "One page on which the results of two rankers are mixed. The ranker whose results are clicked more wins it." }
                dt { b { "Beats" } }
                dd { "Wins more than half of the duels with the other. The best ranker (Copeland winner) beats the most others." }
                dt { b { "Regret" } }
                dd {
                    "What a page costs because it does not show the best ranker alone: the share of others that the best one beats, less the mean \
                     share of the two that were shown. Summed over all pages."
                }
                dt { b { "In flight" } }
                dd { "Handed out by this server, neither answered nor expired." }
                dt { b { "Answers come back evenly" } }
                dd {
                    "A duel should be answered as often whichever rankers are on it. If not, a ranker fails or is slow, and the comparison is \
                     biased. (The sample-ratio check for experiments whose allocation adapts: shown counts differ on purpose here.)"
                }
            }
        }
    }
}
