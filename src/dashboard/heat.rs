//! Win rates: a table for a few rankers, a picture for many, and a table of one ranker against all
//! others.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{Markup, html};

use super::layout::{number, percent};
use super::view::{Pairing, View};
use dueling_bandits::pairs::pairs_by_strips;

/// With more rankers than this, a picture replaces the table.
const TABLE_MAX: usize = 16;
/// Most squares in a row of the picture.
const SQUARES_MAX: usize = 200;
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
    let few = view.active().len() <= TABLE_MAX;
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
            @if few { (table(view)) } @else { (picture(view)) }
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

fn table(view: &View) -> Markup {
    html! {
        div.scroll role="group" aria-labelledby="rates-title" tabindex="0" {
            table.heat {
                caption.sr { "Win rates, row against column: rate, interval, wins : losses (ties)" }
                thead { tr {
                    th scope="col" { span.sr { "Ranker" } }
                    @for &j in view.active() { th scope="col" { span.name { (view.ids[j]) } } }
                } }
                tbody {
                    @for &i in view.active() {
                        tr {
                            th scope="row" { span.name { (view.ids[i]) } }
                            @for &j in view.active() {
                                @if i == j { td.cell.self { span.sr { "itself" } } } @else { (cell(view, i, j)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Squares of one unit. Each shade is one path, and neighbours in a row with the same shade are one
/// rectangle. With many rankers a square shows the pooled duels of several neighbours in the order.
fn picture(view: &View) -> Markup {
    let rankers = view.active().len();
    let each = rankers.div_ceil(SQUARES_MAX);
    // in this order the duels of a square are near each other
    let half_wins = view.half_wins_in_order();
    let blocks = (0..rankers).step_by(each).map(|begin| begin..(begin + each).min(rankers));
    let blocks: Vec<Range<usize>> = blocks.collect();
    let mut paths = vec![String::new(); SHADES + 1];
    let deciding = SHADES;
    for (y, rows) in blocks.iter().enumerate() {
        let mut run: Option<(usize, usize)> = None; // shade, start
        for x in 0..=blocks.len() {
            let square =
                blocks.get(x).and_then(|columns| Square::of(view, &half_wins, rows, columns));
            let here = square.as_ref().map(|square| shade(square.rate(), square.plays));
            if let Some((shade, start)) = run
                && here != Some(shade)
            {
                // Writing to a string cannot fail.
                let _ = write!(paths[shade], "M{start} {y}h{}v1h-{0}z", x - start);
                run = None;
            }
            if let (Some(shade), None) = (here, run) {
                run = Some((shade, x));
            }
            if square.is_some_and(|square| square.deciding) {
                let _ = write!(paths[deciding], "M{x}.5 {y}.1l.4 .4l-.4 .4l-.4 -.4z");
            }
        }
    }
    let compared = pairs_by_strips(rankers)
        .filter(|&(i, j)| half_wins[i * rankers + j] > 0 || half_wins[j * rankers + i] > 0)
        .count();
    let size = blocks.len();
    html! {
        figure.picture {
            svg role="img" viewBox={ "0 0 " (size) " " (size) } shape-rendering="crispEdges"
                aria-label={ "Win rates of " (rankers) " rankers against each other, the best first; " (number(compared as u64))
                    " pairs were compared. The table below shows the numbers of one ranker." } {
                rect.cell.none x="0" y="0" width=(size) height=(size) {}
                @for (shade, path) in paths.iter().enumerate() {
                    @if !path.is_empty() {
                        @if shade == deciding { path.deciding d=(path) {} }
                        @else { path.cell.{ "w" (shade) } d=(path) {} }
                    }
                }
            }
            figcaption {
                (rankers) " rankers, too many for a table. Rows and columns are ordered from the best (top left) to the worst. "
                @if each > 1 {
                    "Each square is the mean of up to " (each) " rankers against up to " (each) " others that are next to each other in this order. "
                }
                "Select a ranker below."
            }
        }
    }
}

/// The duels of the rankers of some rows against those of some columns.
#[derive(Default)]
struct Square {
    wins: f64,
    plays: f64,
    deciding: bool,
}

impl Square {
    /// The square of these places in the order of the active rankers. `None` if none of its pairs
    /// was compared.
    fn of(
        view: &View,
        half_wins: &[u32],
        rows: &Range<usize>,
        columns: &Range<usize>,
    ) -> Option<Self> {
        let active = view.active();
        let mut square = Self::default();
        for i in rows.clone() {
            for j in columns.clone() {
                let [won, lost] = [(i, j), (j, i)].map(|(i, j)| half_wins[i * active.len() + j]);
                let half_plays = u64::from(won) + u64::from(lost);
                if half_plays == 0 {
                    continue;
                }
                let plays = half_plays as f64 / 2.0;
                square.wins += f64::from(won) / half_plays as f64 * plays;
                square.plays += plays;
                square.deciding |= view.is_deciding(active[i], active[j]);
            }
        }
        (square.plays > 0.0).then_some(square)
    }

    fn rate(&self) -> f64 {
        self.wins / self.plays
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
                div.scroll role="group" aria-labelledby="against-title" tabindex="0" {
                    table {
                        caption { code { (view.ids[chosen]) } " against " (rows.len()) " of " (view.ids.len() - 1) " others" }
                        thead { tr {
                            th scope="col" { "Opponent" }
                            th.number scope="col" { "Wins" }
                            th.number scope="col" { "Losses" }
                            th.number scope="col" { "Ties" }
                            th.number scope="col" { "Win rate" }
                            th.number scope="col" { (percent(view.verdict.confidence)) " interval" }
                            th scope="col" { "Standing" }
                        } }
                        tbody {
                            @for (j, pair) in &rows {
                                tr {
                                    th scope="row" { span.name { (view.ids[*j]) } @if view.is_retired(*j) { " " span.small { "retired" } } }
                                    td.number { (number(pair.wins)) }
                                    td.number { (number(pair.losses)) }
                                    td.number { (number(pair.ties)) }
                                    td.number { (percent(pair.rate)) }
                                    td.number { (interval(view.interval(chosen, *j))) }
                                    td { (standing(pair, view.interval(chosen, *j))) }
                                }
                            }
                        }
                    }
                }
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
