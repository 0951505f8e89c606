//! `/experiments/{name}/traffic`: what is in flight, what comes back, and who is shown.

use dueling_bandits::claims::alone::Split;
use maud::{Markup, html};

use super::layout::{Tab, bar, fact, name, number, part, percent, seconds, timestamp};
use super::result::head;
use super::view::View;
use crate::service::batches::OpenBatch;
use crate::service::reports::statistics::Statistics;

const ROWS_MAX: usize = 64;

pub(crate) fn page(view: &View) -> Markup {
    html! {
        (head(view, Tab::Traffic))
        (flow(view))
        @if let Some(open) = &view.batch { (batch(open, view)) }
        // of an experiment that orders decide, the log has no pages without an order
        @if !view.traffic.by_orders { (shown(view)) }
        @if let Some(statistics) = &view.statistics { (pages(statistics)) }
    }
}

fn flow(view: &View) -> Markup {
    let traffic = &view.traffic;
    let (counts, feedback, delay) = (&traffic.counts, traffic.feedback(), traffic.delay());
    let [left, right, ..] = traffic.shown;
    let time =
        |at: Option<f64>| at.map_or_else(|| "–".to_owned(), |at| format!("≤ {}", seconds(at)));
    let [takes_part, outside] = counts.enrolment;
    let content = html! {
        p.note {
            "On this server, since it loaded the experiment at " (timestamp(counts.since_ms))
            ". Wins by side and units shown one ranker alone cover the whole log."
        }
        dl.facts {
            @if !traffic.by_orders {
                (fact("Duels in flight", &html! { span #in-flight { (number(traffic.in_flight)) } }))
            }
            (fact("Pairs issued", &html! { (number(counts.pairs)) }))
            @if takes_part + outside > 0 {
                (fact("Pages that take part", &html! {
                    (percent(view.loaded.spec.coverage)) " planned, "
                    (percent(takes_part as f64 / (takes_part + outside) as f64)) " measured"
                }))
            }
            @if let Some([issued, answered]) = &traffic.alone {
                (fact("Units shown one ranker alone (leader : control)", &arms(issued)))
                @if !traffic.by_orders { (fact("Of these, units with an answer", &arms(answered))) }
            }
            (fact("Feedback recorded", &html! { (number(feedback.recorded)) }))
            (fact("Duplicates", &html! { (number(feedback.duplicate)) }))
            (fact("Conflicts", &html! { (number(feedback.conflict)) }))
            (fact("Too late", &html! { (number(feedback.expired + feedback.late)) }))
            (fact("Unknown duels", &html! { (number(feedback.invalid)) }))
            @if let Some(unanswered) = traffic.unanswered() {
                (fact("Expired without feedback", &html! { (number(unanswered)) }))
            }
            (fact("Median time to feedback", &html! { (time(delay.p50_seconds)) }))
            (fact("99th percentile", &html! { (time(delay.p99_seconds)) }))
            @if !traffic.by_orders { (fact("Wins left : right", &html! {
                (number(left)) " : " (number(right))
                @if left + right > 0 { " (" (percent(left as f64 / (left + right) as f64)) " left)" }
            })) }
            (fact("Last feedback", &html! {
                @match counts.last_feedback_ms { Some(at) => { (timestamp(at)) } None => { "–" } }
            }))
            (fact("Feedback rate equal for all pairs", &match traffic.answered_share() {
                _ if view.answer.alarms.iter().any(|alarm| alarm.kind == "uneven-answers") => html! { "no" },
                Some(share) => html! { "no sign of a difference (" (percent(share)) " answered)" },
                None if traffic.by_orders => html! { "not asked: orders decide" },
                None => html! { "too little data" },
            }))
        }
        p.note {
            "Duels should get feedback at the same rate, whichever rankers are on them and on whichever side. If not, a ranker "
            "fails or is slow, and the comparison is biased. Only duels whose time is over count."
        }
    };
    part("traffic", "Traffic", &content)
}

/// The open batch: how far it is, what it needs, and when the policy adapts.
fn batch(open: &OpenBatch, view: &View) -> Markup {
    let Some(number_now) = open.number else {
        return part("batch", "The open batch", &html! { p { "No batch is open." } });
    };
    let left = open.needed - open.answered;
    let content = html! {
        dl.facts {
            (fact("Batch", &html! { (number(number_now.into())) " of at most " (number(open.number_max.into())) }))
            (fact("Opened", &html! { @if let Some(at) = open.opened_ms { (timestamp(at)) } }))
            (fact("Comparisons answered", &html! {
                (number(open.answered)) " of " (number(open.needed)) ", " (number(open.in_flight)) " in flight"
            }))
            (fact("Pairs that need more", &html! {
                (number(open.pairs_missing as u64)) " of " (number(open.pairs_total as u64))
            }))
            (fact("The policy adapts", &html! { "after " (number(left)) " more comparisons" }))
        }
        table {
            thead { tr {
                th scope="col" { "Pair" }
                th.n scope="col" { "Needed" }
                th.n scope="col" { "Answered" }
                th.n scope="col" { "In flight" }
            } }
            tbody { @for pair in &open.pairs { tr {
                th scope="row" { (view.short(&pair.left)) " with " (view.short(&pair.right)) }
                td.n { (number(pair.needed.into())) }
                td.n { (number(pair.answered.into())) }
                td.n { (number(pair.in_flight.into())) }
            } } }
        }
        @if open.pairs_missing > open.pairs.len() {
            p.note { "The first " (number(open.pairs.len() as u64)) " of these pairs." }
        }
    };
    part("batch", "The open batch", &content)
}

/// Units by arm, and whether they are split evenly.
fn arms(split: &Split) -> Markup {
    let [leader, control] = split.units();
    let sign = if split.uneven_since().is_some() { "not even" } else { "no proof of a difference" };
    html! { (number(leader)) " : " (number(control)) " (" (sign) ")" }
}

fn shown(view: &View) -> Markup {
    let places: u64 = view.fold.counts.appearances().iter().sum();
    let content = html! {
        p.note {
            "Each page has two places; a self-duel takes both. The whole log"
            @if view.loaded.spec.alone > 0.0 { ", without the units that see one ranker alone" }
            "."
        }
        table.places {
            thead { tr {
                th scope="col" { "Ranker" }
                th.n scope="col" { "Places" }
                th.n scope="col" { "Share" }
                th scope="col" { span.sr { "Picture" } }
            } }
            tbody { @for &i in view.order.iter().filter(|i| view.twin != Some(**i)).take(ROWS_MAX) {
                @let own = view.fold.counts.appearances()[i];
                @let share = own as f64 / places.max(1) as f64;
                tr {
                    th scope="row" {
                        (view.short(&view.ids[i]))
                        @if !view.fold.roster.is_active(i) { " " span.badge { "retired" } }
                    }
                    td.n { (number(own)) }
                    td.n { (percent(share)) }
                    td { (bar(share)) }
                }
            } }
        }
    };
    part("shown", "Rankers shown", &content)
}

/// How balanced the interleaved pages are.
fn pages(statistics: &Statistics) -> Markup {
    let made = statistics.versions.iter().filter(|version| version.version.is_some());
    if made.clone().next().is_none() && statistics.canary.is_none() {
        return Markup::default();
    }
    let share = |share: Option<f64>| share.map_or_else(|| "–".into(), percent);
    let content = html! {
        @for alarm in &statistics.alarms { p.alarm role="alert" { b { "Warning: " } (super::layout::with_code(alarm)) "." } }
        @if let Some(canary) = &statistics.canary {
            p {
                "The canary, two ids of the same ranker: " (name(&canary.ranker)) " won " (number(canary.wins)) ", "
                (name(&canary.against)) " won " (number(canary.losses)) ". "
                @if canary.alarm { b { "They differ, so something between the ranking and the click is biased." } }
                @else { "There is no sign of a bias." }
            }
        }
        @for version in made.rev() {
            p {
                "Version " (version.version.unwrap_or(1)) ", " code { (version.method.unwrap_or("")) } ": " (number(version.pages.pages))
                " settled pages. The ranker listed first was left on " (share(version.pages.left_share))
                " and drafted first on " (share(version.pages.first_share)) " of them (both should be near 50 %); "
                (share(version.pages.competitive_share)) " of the slots can earn credit."
            }
        }
        @if statistics.open_pages > 0 {
            p.note { (number(statistics.open_pages)) " pages have clicks and are not settled yet." }
        }
    };
    part("interleaved", "Interleaved pages", &content)
}
