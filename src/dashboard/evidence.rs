//! `/experiments/{name}/evidence`: for statisticians, what the result is made of.

use maud::{Markup, html};

use super::chart::{Chart, Figure, Labels, Line, links, scale};
use super::layout::{Tab, counted, margin_points, of_experiments, part, percent, quantity};
use super::race;
use super::result::head;
use super::view::View;
use crate::service::reports::regret::{RegretPoint, RegretReport};

/// Most rankers in the table of who beats whom.
const MATRIX_MAX: usize = 16;
/// A pair with fewer answers than this is grey, unless one of the two is proven to win.
const FEW: f64 = 100.0;
const REPORTS: [&str; 7] =
    ["verdict", "standings", "regret", "winners", "statistics", "segments", "traffic"];

pub(crate) fn page(view: &View) -> Markup {
    html! {
        (head(view, Tab::Evidence))
        @if view.has_compared() {
            (part("race", "The race to the result", &race::figure(view)))
            @match view.verdict.orders {
                // the wins are parts of credit, which the lead has
                Some(_) => { p { "How each ranker stands to the leader: " a href={ "/experiments/" (view.record.name) "#much" } { "by how much" } "." } }
                None => { (matrix(view)) }
            }
        } @else { p { "No page has had a winner yet." } }
        // where orders decide, pages without an order are not in the log
        @if let (Some(report), None) = (&view.regret, &view.verdict.orders) { (regret(view, report)) }
        (addresses(view))
    }
}

/// Where the numbers are as JSON.
fn addresses(view: &View) -> Markup {
    let content = html! {
        p {
            "As JSON: "
            @for (index, part) in REPORTS.iter().enumerate() {
                @if index > 0 { ", " }
                code { "/v1/experiments/" (view.record.name) "/" (part) }
            }
            ". The policy is " code { (view.loaded.spec.policy.kind()) } "."
        }
    };
    part("json", "The numbers", &content)
}

/// A name that is cut off to fit, and shown whole once it is pointed at or focused.
fn cut(number: usize, id: &str) -> Markup {
    html! { span.cut tabindex="0" { b { (number) } " " bdi { (id) } } }
}

fn matrix(view: &View) -> Markup {
    let shown = &view.active()[..view.active().len().min(MATRIX_MAX)];
    let active = view.fold.roster.active();
    let evidence = view.fold.tracker.evidence(&view.fold.tally, active);
    let place = |ranker: usize| active.binary_search(&ranker).unwrap_or(0);
    let proven = |i, j| evidence.ln(place(i), place(j)) >= view.fold.tracker.threshold();
    let cell = |i: usize, j: usize| {
        let Some(rate) = view.fold.expected.mean(i, j) else {
            return html! { td.few { span.sr { "never compared" } span aria-hidden="true" { "–" } } };
        };
        let (wins, losses) = (view.fold.expected.wins(i, j), view.fold.expected.wins(j, i));
        let class = match (proven(i, j), proven(j, i)) {
            (true, false) => "u",
            (false, true) => "d",
            _ if wins + losses < FEW => "few",
            _ => "",
        };
        html! { td.(class) title={ (wins) ":" (losses) } { (format!("{:.0}", 100.0 * rate)) } }
    };
    let content = html! {
        p.note {
            "Share of pages that the ranker of the row won against the ranker of the column, in %. Grey: fewer than " (FEW) " answers, and none of the two is proven to win."
            @if view.waiting().is_some() { " With the answers that wait." }
            @if view.active().len() > MATRIX_MAX { " The best " (MATRIX_MAX) " of " (view.active().len()) " rankers." }
        }
        div.scroll role="group" aria-labelledby="matrix-h" tabindex="0" {
            table.matrix {
                thead { tr {
                    th scope="col" { "Ranker, best first" }
                    th scope="col" { "Chance" }
                    @for (number, &j) in shown.iter().enumerate() {
                        th scope="col" { abbr title=(view.ids[j]) { (number + 1) } }
                    }
                } }
                tbody { @for (number, &i) in shown.iter().enumerate() { tr {
                    th scope="row" { (cut(number + 1, &view.ids[i])) }
                    td.chance { (percent(view.verdict.rankers[i].best_probability)) }
                    @for &j in shown {
                        @if i == j { td.self { span.sr { "itself" } span aria-hidden="true" { "·" } } } @else { (cell(i, j)) }
                    }
                } } }
            }
        }
        p.note {
            "Blue: these pages alone prove that the row is "
            @if view.verdict.margin > 0.0 { "at most " (margin_points(view.verdict.margin)) " behind. " } @else { "better. " }
            "Orange: that the column is. The chance of being best is no proof: a model of the preferences gives it, and rankers that "
            "are best together share it."
        }
    };
    part("matrix", "Who beats whom", &content)
}

/// Regret over time, with its bounds.
fn regret(view: &View, report: &RegretReport) -> Markup {
    let now = report.now.copeland_regret;
    let even = report.now.uniform_copeland_regret;
    let has_even = view.fold.roster_changes == 0;
    let content = html! {
        @if report.series.is_empty() || !view.has_compared() { p { "No page has had a winner yet." } } @else {
            p {
                "About " b #regret-mean { (quantity(now.mean)) } " (" span #regret-range { (quantity(now.low)) " to " (quantity(now.high)) }
                ") over " (counted(report.now.steps, "page", "pages"))
                @if has_even { ", and " (quantity(even.mean)) " for an even split" }
                "."
                @if let (false, Some(recent)) = (view.is_over(), &report.now.recent) {
                    " Of the newest " (counted(recent.steps, "page", "pages")) ", each thousand costs " (quantity(recent.copeland_regret.mean)) "."
                }
            }
            @if let Some(bounds) = report.now.bounds {
                p {
                    "Without a model it is between " b { (quantity(bounds.low)) } " and " b { (quantity(bounds.high)) }
                    ", which is wrong in at most " (of_experiments(1.0 - bounds.confidence)) " experiments."
                }
            }
            (chart(report, has_even).render())
            (links(&view.record.name, Figure::Regret))
            p.note {
                "Pages to the right. The area has 95 % of the draws of the model; where rankers are nearly even, the truth is outside more often. "
                "Regret is the cost of pages that do not show only the best ranker: between 0 and 1 for each page. With new answers, the "
                "cost of past pages is estimated again."
            }
        }
    };
    part("regret", "Regret", &content)
}

/// The picture of regret, with that of an even split if the rankers have not changed.
pub(crate) fn chart(report: &RegretReport, has_even: bool) -> Chart {
    let most = |of: fn(&RegretPoint) -> f64| report.series.iter().map(of).fold(0.0, f64::max);
    let x = scale(most(|point| point.steps as f64), Labels::Whole);
    let height = most(|point| point.mean).max(most(|point| point.high)).max(if has_even {
        most(|point| point.uniform_mean)
    } else {
        0.0
    });
    let y = scale(height, Labels::Any);
    let line = |label: &str, colour, of: fn(&RegretPoint) -> f64| Line {
        label: label.into(),
        colour,
        points: std::iter::once((0.0, 0.0))
            .chain(
                report.series.iter().map(|point| (point.steps as f64 / x.end, of(point) / y.end)),
            )
            .collect(),
        preview: Vec::new(),
    };
    let now = report.now.copeland_regret;
    Chart {
        summary: format!(
            "Regret over pages: {} now, between {} and {}.",
            quantity(now.mean),
            quantity(now.low),
            quantity(now.high)
        ),
        lines: std::iter::once(line("this experiment", 1, |point| point.mean))
            .chain(has_even.then(|| line("an even split", 2, |point| point.uniform_mean)))
            .collect(),
        band: report
            .series
            .iter()
            .map(|point| (point.steps as f64 / x.end, point.low / y.end, point.high / y.end))
            .collect(),
        x_ticks: x.ticks,
        y_ticks: y.ticks,
        ..Chart::default()
    }
}
