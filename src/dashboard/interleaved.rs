//! Results of interleaved pages: Δ of the pairs, and checks of the pages themselves.

use maud::{Markup, html};

use super::layout::{number, percent, table};
use super::view::View;
use crate::service::reports::statistics::{PairStatistics, VersionStatistics};

/// Maximum number of pairs shown for a version.
const ROWS_MAX: usize = 10;
const HEADS: [&str; 6] =
    ["Pair", "#Δ", "#95 % interval", "#Wins : losses (ties)", "#No signal", "#More pages needed"];

/// The section on interleaved pages; empty for an experiment without such pages.
pub(crate) fn section(view: &View) -> Markup {
    let statistics = &view.statistics;
    if statistics.versions.is_empty() && statistics.canary.is_none() {
        return Markup::default();
    }
    html! {
        section aria-labelledby="interleaved-title" {
            h2 #interleaved-title { "Interleaved pages" }
            @for alarm in &statistics.alarms { p.alarm role="alert" { b { "Warning: " } (alarm) "." } }
            @if let Some(canary) = &statistics.canary {
                p {
                    "The canary, two ids of the same ranker: " code { (canary.ranker) } " won " (number(canary.wins)) ", "
                    code { (canary.against) } " won " (number(canary.losses)) ". "
                    @if canary.alarm { b { "They differ, so something between the ranking and the click is biased." } }
                    @else { "There is no sign of a bias." }
                }
            }
            @for version in statistics.versions.iter().rev() { (of_version(version)) }
            @if statistics.open_pages > 0 {
                p.quiet { (number(statistics.open_pages)) " pages have clicks and are not settled yet." }
            }
        }
    }
}

fn of_version(version: &VersionStatistics) -> Markup {
    let share = |share: Option<f64>| share.map_or_else(|| "–".into(), percent);
    let mut pairs: Vec<_> = version.pairs.iter().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pages(pair)));
    let shown = &pairs[..pairs.len().min(ROWS_MAX)];
    let label = format!("Pairs of version {}", version.version.unwrap_or(1));
    let caption = html! {
        @if shown.len() < pairs.len() { "The " (ROWS_MAX) " pairs with the most pages, of " (number(pairs.len() as u64)) }
        @else { "Δ above 0 favours the first ranker of the pair" }
    };
    html! {
        h3 { "Version " (version.version.unwrap_or(1)) ": " (version.method.unwrap_or("")) }
        p.quiet {
            (number(version.pages.pages)) " settled pages. The ranker listed first was left on " (share(version.pages.left_share))
            " and drafted first on " (share(version.pages.first_share)) " of them (both should be near 50 %); "
            (share(version.pages.competitive_share)) " of the slots can earn credit."
        }
        (table(&label, &HEADS, &caption, &html! { @for pair in shown { (row(pair)) } }))
        p.quiet {
            "Δ is the share of pages won minus one half. Its interval describes these counts only; do not stop the experiment because of \
             it. Use the verdict above, which is valid at all times."
        }
    }
}

fn pages(pair: &PairStatistics) -> u64 {
    pair.wins + pair.losses + pair.ties + pair.no_signal.total
}

fn row(pair: &PairStatistics) -> Markup {
    html! {
        tr {
            th scope="row" { (pair.ranker) " : " (pair.against) }
            td.number { (pair.delta.map_or_else(|| "–".into(), signed)) }
            td.number {
                @if let Some(interval) = &pair.interval { (signed(interval.low)) " to " (signed(interval.high)) } @else { "–" }
            }
            td.number { (number(pair.wins)) ":" (number(pair.losses)) " (" (number(pair.ties)) ")" }
            td.number { (number(pair.no_signal.total)) }
            td.number { (pair.power.map_or_else(|| "–".into(), |power| number(power.more_pages))) }
        }
    }
}

fn signed(delta: f64) -> String {
    let sign = if delta < 0.0 { "−" } else { "+" };
    format!("{sign}{:.3}", delta.abs())
}
