//! `/experiments/{name}`: the page of one experiment.

use maud::{Markup, html};

use super::layout::{Visitor, fact, number, percent, seconds, status, time, timestamp, with_code};
use super::view::View;
use super::{heat, history, interleaved, race, verdict};
use crate::service::reports::alarms::SERVER_EVIDENCE;
use rankduel_store::events::Status;

/// The page.
pub(crate) fn page(view: &View, visitor: Visitor) -> Markup {
    html! {
        div.title {
            h1 { (view.record.name) " " (status(&view.record)) }
            @if visitor.manages {
                a.button href={ "/experiments/" (view.record.name) "/manage" } { "Manage" }
            }
        }
        p.quiet {
            (view.active().len()) " rankers"
            @if !view.retired().is_empty() { " (" (view.retired().len()) " retired)" }
            ", policy " code { (view.loaded.spec.policy.kind()) } ", since " (timestamp(view.record.created_at)) ". "
            "As JSON: "
            @for (index, part) in ["verdict", "standings", "regret", "winners", "statistics", "traffic"].iter().enumerate() {
                @if index > 0 { ", " }
                code { "/v1/experiments/" (view.record.name) "/" (part) }
            }
            ". " a href={ "/experiments/" (view.record.name) "/segments" } { "Results by segment" }
        }
        (alarms(view))
        (verdict::section(view))
        (race::section(view))
        div.columns {
            (history::cost(view))
            (history::shown(view))
        }
        (traffic(view))
        (heat::section(view))
        (interleaved::section(view))
        (rankers(view))
        @if view.batch.is_some() { (batch(view)) }
        (glossary())
    }
}

fn alarms(view: &View) -> Markup {
    html! {
        @for alarm in &view.alarms {
            div.alarm role="alert" {
                h3 { (alarm.title) }
                p { (alarm.detail) }
                p { b { "Likely cause: " } (with_code(alarm.cause)) }
                p { b { "What to do: " } (with_code(alarm.action)) }
            }
        }
    }
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
            p.quiet {
                "On this server, since it loaded the experiment at " (timestamp(traffic.since_ms))
                ". Wins by side cover the whole log."
            }
            dl.facts {
                (fact("Duels in flight", &html! { span #in-flight { (number(traffic.in_flight)) } }))
                (fact("Pairs issued", &html! { (number(traffic.pairs)) }))
                (fact("Feedback recorded", &html! { (number(feedback.recorded)) }))
                (fact("Duplicates", &html! { (number(feedback.duplicate)) }))
                (fact("Conflicts", &html! { (number(feedback.conflict)) }))
                (fact("Too late", &html! { (number(feedback.expired + feedback.late)) }))
                (fact("Unknown duels", &html! { (number(feedback.invalid)) }))
                (fact("Expired without feedback", &html! { (number(traffic.unanswered)) }))
                (fact("Median time to feedback", &html! { (time(traffic.delay.p50_seconds)) }))
                (fact("99th percentile", &html! { (time(traffic.delay.p99_seconds)) }))
                (fact("Wins left : right", &html! {
                    (number(left)) " : " (number(right))
                    @if left + right > 0 { " (" (percent(left as f64 / (left + right) as f64)) " left)" }
                }))
                (fact("Feedback rate equal for all pairs", &match traffic.answered_share() {
                    Some(_) if traffic.ended.evidence >= SERVER_EVIDENCE => html! { "no" },
                    Some(share) => html! { "no sign of a difference (" (percent(share)) " answered)" },
                    None => html! { "too little data" },
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
            div.scroll role="group" aria-labelledby="rankers-title" tabindex="0" {
                table {
                    caption { "Best first; ★ marks the leaders" @if !view.retired().is_empty() { "; retired rankers last" } }
                    thead { tr {
                        th scope="col" { "Ranker" }
                        th.number scope="col" { "Probability of being best" }
                        th.number scope="col" { "Beats" }
                        th.number scope="col" { "Mean win rate" }
                        th.number scope="col" { "Wins" }
                        th.number scope="col" { "Losses" }
                        th.number scope="col" { "Ties" }
                        th.number scope="col" { "Shown" }
                        th scope="col" { "Share of places" }
                    } }
                    tbody {
                        @for &i in &view.order {
                            @let row = &view.standings.rankers[i];
                            @let is_twin = view.twin == Some(i);
                            @let retired = view.is_retired(i) || is_twin;
                            @let others = (view.active().len() - usize::from(!retired)) as f64;
                            tr {
                                th scope="row" { span.name { (row.id) @if row.leader { span.star { " ★" } span.sr { " (leads)" } } }
                                    @if is_twin { " " span.badge.archived { "canary" } }
                                    @else if retired { " " span.badge.archived { "retired" } } }
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
    let (needed, answered, in_flight) = (batch.needed, batch.answered, batch.in_flight);
    html! {
        section aria-labelledby="batch-title" {
            h2 #batch-title { "Batch" }
            @if let Some(number_of) = batch.number {
                p {
                    "Batch " (number_of) @if let Some(at) = &batch.opened_at { ", open since " (time(at)) } ": "
                    b { (number(answered.min(needed))) " of " (number(needed)) } " comparisons of " (number(batch.pairs_total as u64))
                    " pairs are answered; " (number(in_flight)) " are in flight."
                }
                progress max=(needed.max(1)) value=(answered.min(needed)) aria-labelledby="batch-title" {
                    (percent(answered as f64 / needed.max(1) as f64))
                }
                p.quiet { "The policy adapts when the batch is complete. Until then it issues the pairs of this batch." }
            } @else {
                p {
                    @if view.record.status == Status::Concluded {
                        "No batch is open: the experiment issues no more comparisons."
                    } @else {
                        "The policy has run all its batches and shows its winner."
                    }
                }
            }
        }
    }
}

fn glossary() -> Markup {
    html! {
        details #words {
            summary { "Glossary" }
            dl {
                dt { b { "Duel" } }
                dd { "One page with the interleaved results of two rankers. The ranker whose results get more clicks wins." }
                dt { b { "Beats" } }
                dd { "Wins more than half of the duels against another ranker. The best ranker (Copeland winner) beats the most others." }
                dt { b { "Regret" } }
                dd {
                    "The cost of a page that does not show only the best ranker: the share of others that the best ranker beats, \
                     minus the mean of this share over the two rankers shown. Summed over all pages."
                }
                dt { b { "In flight" } }
                dd { "Issued by this server, and neither answered nor expired." }
                dt { b { "Feedback rate equal for all pairs" } }
                dd {
                    "Duels should get feedback at the same rate, whichever rankers are on them and on whichever side. If not, a \
                     ranker fails or is slow, and the comparison is biased. Only duels whose time is over count. This is \
                     the sample-ratio check for adaptive allocation, where pairs are shown differently often on purpose."
                }
            }
        }
    }
}
