//! How often each pair was compared, in total and recently.

use maud::{Markup, html};

use super::layout::{number, percent};
use super::view::View;

/// Maximum number of rows in the table.
const ROWS_MAX: usize = 10;

/// The section on pairs; empty before the first comparison.
pub(crate) fn section(view: &View) -> Markup {
    let mut met: Vec<_> = (1..view.ids.len())
        .flat_map(|i| (0..i).map(move |j| (j, i)))
        .filter_map(|(i, j)| {
            let pair = view.duels_with_result(i, j);
            (pair > 0).then(|| (i, j, pair, view.recent_rate(i, j)))
        })
        .collect();
    if met.is_empty() {
        return Markup::default();
    }
    let total: u64 = met.iter().map(|(.., duels, _)| duels).sum();
    let recent: f64 = met.iter().map(|(.., rate)| rate).sum();
    met.sort_by(|(.., a_duels, a), (.., b_duels, b)| b.total_cmp(a).then(b_duels.cmp(a_duels)));
    let recent_share = |rate: f64| if recent > 0.0 { percent(rate / recent) } else { "–".into() };
    let (shown, rest) = met.split_at(met.len().min(ROWS_MAX));
    html! {
        section aria-labelledby="pairs-title" {
            h2 #pairs-title { "Pairs compared" }
            p {
                "A good policy stops comparing pairs that are decided. The recent share weights newer comparisons more: one from half the experiment ago counts half."
            }
            div.scroll role="group" aria-labelledby="pairs-title" tabindex="0" {
                table {
                    caption {
                        @if rest.is_empty() { "Most compared recently first" }
                        @else { "The " (ROWS_MAX) " pairs most compared recently, of " (number(met.len() as u64)) " compared pairs" }
                    }
                    thead { tr {
                        th scope="col" { "Pair" }
                        th.number scope="col" { "Duels with a result" }
                        th.number scope="col" { "Share of all duels" }
                        th.number scope="col" { "Recent share" }
                    } }
                    tbody {
                        @for (i, j, duels, rate) in shown {
                            tr {
                                th scope="row" { (name(view, *i)) " : " (name(view, *j)) }
                                td.number { (number(*duels)) }
                                td.number { (percent(*duels as f64 / total as f64)) }
                                td.number { (recent_share(*rate)) }
                            }
                        }
                        @if !rest.is_empty() {
                            @let duels: u64 = rest.iter().map(|(.., duels, _)| duels).sum();
                            @let rate: f64 = rest.iter().map(|(.., rate)| rate).sum();
                            tr {
                                th scope="row" { (number(rest.len() as u64)) " others" }
                                td.number { (number(duels)) }
                                td.number { (percent(duels as f64 / total as f64)) }
                                td.number { (recent_share(rate)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn name(view: &View, i: usize) -> Markup {
    html! { (view.ids[i]) @if view.is_retired(i) { " (retired)" } }
}
