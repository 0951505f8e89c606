//! Win rates: a table of the best rankers, and one of one ranker against all others.

use maud::{Markup, html};

use super::layout::{number, percent, table};
use super::view::{Pairing, View};

/// Most rankers in the table of win rates.
const TABLE_MAX: usize = 16;
/// Shades from "always loses" to "always wins".
const SHADES: usize = 9;

/// The shade of a win rate: that of the posterior mean under a uniform prior, so that few duels
/// give a pale shade.
fn shade(rate: f64, plays: f64) -> usize {
    let mean = (rate * plays + 1.0) / (plays + 2.0);
    ((mean * SHADES as f64) as usize).min(SHADES - 1)
}

/// The section on win rates.
pub(crate) fn section(view: &View) -> Markup {
    let active = view.active().len();
    html! {
        section #rates aria-labelledby="rates-title" {
            h2 #rates-title { "Win rates" }
            p {
                "Each cell shows how often the ranker of the row won its duels against the ranker of the column. Below it are the \
                 interval, which is valid at all times (" (percent(view.verdict.confidence)) " confidence), and wins : losses (ties). "
                @if !view.deciding.is_empty() { b { "◆" }
                    " marks the pairs that decide the winner"
                    @if view.verdict.deciding_pairs_total * 2 > view.deciding.len() {
                        ", the ten that matter most of " (number(view.verdict.deciding_pairs_total as u64))
                    }
                    ". "
                }
                "More duels give a stronger shade. The best ranker is first."
            }
            @if let [first, rest @ ..] = view.retired() {
                p.quiet {
                    "Retired rankers are omitted: " code { (view.ids[*first]) }
                    @if rest.len() < 10 { @for &i in rest { ", " code { (view.ids[i]) } } } @else { " and " (rest.len()) " others" }
                    ". The table below shows their numbers."
                }
            }
            @if let Some(twin) = view.twin {
                p.quiet { code { (view.ids[twin]) } " is the canary: it takes no part in the tournament, and is omitted." }
            }
            @if active > TABLE_MAX {
                p.quiet { "The table has the best " (TABLE_MAX) " of " (active) " rankers. Select any other below." }
            }
            (matrix(view))
            ul.legend.shades aria-label="Shades" {
                @for (class, label) in [("w0", "almost always loses"), ("w2", "loses"), ("w4", "even"), ("w6", "wins"),
                    ("w8", "almost always wins"), ("none", "never compared")] {
                    li { span.key.cell.(class) {} (label) }
                }
            }
        }
        (against(view))
    }
}

fn cell(view: &View, i: usize, j: usize) -> Markup {
    let Some(pair) = view.pairing(i, j) else {
        return html! { td.cell.none { span.sr { "never compared" } "–" } };
    };
    let class = format!("cell w{}", shade(pair.rate, pair.plays));
    html! {
        td class=(class) {
            @if pair.deciding { span.mark aria-hidden="true" { "◆" } span.sr { "decides; " } }
            span.rate { (percent(pair.rate)) }
            span.small { (interval(view.interval(i, j))) }
            span.small { (number(pair.wins)) ":" (number(pair.losses)) @if pair.ties > 0 { " (" (number(pair.ties)) ")" } }
        }
    }
}

fn matrix(view: &View) -> Markup {
    let shown = &view.active()[..view.active().len().min(TABLE_MAX)];
    html! {
        div.scroll role="group" aria-labelledby="rates-title" tabindex="0" {
            table.heat {
                caption.sr { "Win rates, row against column: rate, interval, wins : losses (ties)" }
                thead { tr {
                    th scope="col" { span.sr { "Ranker" } }
                    @for &j in shown { th scope="col" { span.name { (view.ids[j]) } } }
                } }
                tbody {
                    @for &i in shown {
                        tr {
                            th scope="row" { span.name { (view.ids[i]) } }
                            @for &j in shown {
                                @if i == j { td.cell.self { span.sr { "itself" } } } @else { (cell(view, i, j)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One ranker against each of the others.
fn against(view: &View) -> Markup {
    let chosen = view.chosen;
    let rows: Vec<(usize, Pairing)> = view
        .order
        .iter()
        .filter_map(|&j| Some((j, view.pairing(chosen, j).filter(|_| j != chosen)?)))
        .collect();
    let interval_of = format!("#{} interval", percent(view.verdict.confidence));
    let heads = ["Opponent", "#Wins", "#Losses", "#Ties", "#Win rate", &interval_of, "Standing"];
    let caption = html! { code { (view.ids[chosen]) } " against " (rows.len()) " of " (view.ids.len() - 1) " others" };
    html! {
        section #against aria-labelledby="against-title" {
            h2 #against-title { "One ranker against the others" }
            form.choose method="get" action="#against" {
                label for="ranker" { "Ranker" }
                select #ranker name="ranker" {
                    @for &i in &view.order { option value=(view.ids[i]) selected[i == chosen] {
                        (view.ids[i]) @if view.is_retired(i) { " (retired)" }
                    } }
                }
                button type="submit" { "Show" }
            }
            @if rows.is_empty() {
                p { code { (view.ids[chosen]) } " has not been compared yet." }
            } @else {
                (table("One ranker against the others", &heads, &caption, &html! { @for (j, pair) in &rows { tr {
                    th scope="row" { span.name { (view.ids[*j]) } @if view.is_retired(*j) { " " span.small { "retired" } } }
                    td.number { (number(pair.wins)) }
                    td.number { (number(pair.losses)) }
                    td.number { (number(pair.ties)) }
                    td.number { (percent(pair.rate)) }
                    td.number { (interval(view.interval(chosen, *j))) }
                    td { (standing(pair, view.interval(chosen, *j))) }
                } } }))
            }
        }
    }
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{:.0}–{:.0}\u{202f}%", 100.0 * low, 100.0 * high)
}

fn standing(pair: &Pairing, interval: (f64, f64)) -> Markup {
    let is = match interval {
        (low, _) if low > 0.5 => "clearly ahead",
        (_, high) if high < 0.5 => "clearly behind",
        _ if pair.rate > 0.5 => "ahead, not clearly",
        _ if pair.rate < 0.5 => "behind, not clearly",
        _ => "even",
    };
    html! { (is) @if pair.deciding { " " span.mark { "◆ decides" } } }
}
