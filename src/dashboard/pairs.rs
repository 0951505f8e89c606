//! How often each pair was compared, in total and recently.

use maud::{Markup, html};

use super::layout::{number, percent};
use super::view::View;

/// Maximum number of rows in the table.
const ROWS_MAX: usize = 10;

/// The section on pairs; empty before the first comparison.
pub(crate) fn section(view: &View) -> Markup {
    let Met { shown, pairs, duels: total, rate: recent, others } = Met::of(view);
    if pairs == 0 {
        return Markup::default();
    }
    let rest = pairs - shown.len();
    let recent_share = |rate: f64| if recent > 0.0 { percent(rate / recent) } else { "–".into() };
    html! {
        section aria-labelledby="pairs-title" {
            h2 #pairs-title { "Pairs compared" }
            p {
                "A good policy stops comparing pairs that are decided. The recent share weights newer comparisons more: one from half the experiment ago counts half."
            }
            div.scroll role="group" aria-labelledby="pairs-title" tabindex="0" {
                table {
                    caption {
                        @if rest == 0 { "Most compared recently first" }
                        @else { "The " (ROWS_MAX) " pairs most compared recently, of " (number(pairs as u64)) " compared pairs" }
                    }
                    thead { tr {
                        th scope="col" { "Pair" }
                        th.number scope="col" { "Duels with a result" }
                        th.number scope="col" { "Share of all duels" }
                        th.number scope="col" { "Recent share" }
                    } }
                    tbody {
                        @for &Pair { i, j, duels, rate } in &shown {
                            tr {
                                th scope="row" { (name(view, i)) " : " (name(view, j)) }
                                td.number { (number(duels)) }
                                td.number { (percent(duels as f64 / total as f64)) }
                                td.number { (recent_share(rate)) }
                            }
                        }
                        @if rest > 0 {
                            @let duels = total - shown.iter().map(|pair| pair.duels).sum::<u64>();
                            tr {
                                th scope="row" { (number(rest as u64)) " others" }
                                td.number { (number(duels)) }
                                td.number { (percent(duels as f64 / total as f64)) }
                                td.number { (recent_share(others)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A pair that was compared.
struct Pair {
    i: usize,
    j: usize,
    /// Duels with a result.
    duels: u64,
    /// Recent comparisons per page.
    rate: f64,
}

/// The pairs that were compared.
struct Met {
    /// The most compared recently, in order.
    shown: Vec<Pair>,
    /// Number of all.
    pairs: usize,
    /// Duels of all.
    duels: u64,
    /// Sum of the rates of all, and of those that are not shown.
    rate: f64,
    others: f64,
}

impl Met {
    fn of(view: &View) -> Self {
        let mut met = Self { shown: Vec::new(), pairs: 0, duels: 0, rate: 0.0, others: 0.0 };
        for (i, j) in (1..view.ids.len()).flat_map(|j| (0..j).map(move |i| (i, j))) {
            let duels = view.duels_with_result(i, j);
            if duels == 0 {
                continue;
            }
            let rate = view.recent_rate(i, j);
            met.pairs += 1;
            met.duels += duels;
            met.rate += rate;
            // behind those that are equal, which come first
            let is_before =
                |one: &Pair| one.rate.total_cmp(&rate).then(one.duels.cmp(&duels)).is_ge();
            if met.shown.len() == ROWS_MAX && met.shown.last().is_some_and(is_before) {
                met.others += rate;
                continue;
            }
            let place = met.shown.partition_point(is_before);
            met.shown.insert(place, Pair { i, j, duels, rate });
            if met.shown.len() > ROWS_MAX {
                met.others += met.shown.pop().map_or(0.0, |pair| pair.rate);
            }
        }
        met
    }
}

fn name(view: &View, i: usize) -> Markup {
    html! { (view.ids[i]) @if view.is_retired(i) { " (retired)" } }
}
