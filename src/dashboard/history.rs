//! Changes over time: the cost of exploration, and which rankers were shown.

use maud::{Markup, html};

use super::layout::{number, percent, quantity};
use super::plot::{Axis, Band, Line, Plot};
use super::view::View;
use crate::service::reports::regret::Band as Saved;

/// Rankers with a line of their own; the others share one.
const LINES_MAX: usize = 6;

/// The picture of the cost of exploration.
fn cost_plot(view: &View) -> Plot<'static> {
    let report = &view.regret;
    let (mean, uniform) =
        (report.posterior.copeland_regret, report.posterior.uniform_copeland_regret);
    let series =
        |of: &dyn Fn(&crate::service::reports::regret::RegretPoint) -> f64| -> Vec<(f64, f64)> {
            let points = report.series.iter().map(|point| (point.steps as f64, of(point)));
            std::iter::once((0.0, 0.0)).chain(points).collect()
        };
    Plot {
        name: "cost",
        summary: format!(
            "Regret over time: {} after {} pages, between {} and {}; uniform pairs would have cost {}.",
            quantity(mean.mean),
            report.plug_in.steps,
            quantity(mean.low),
            quantity(mean.high),
            quantity(uniform.mean)
        ),
        x_label: "pages shown",
        y_label: "regret so far",
        lines: vec![
            Line {
                label: "this experiment".into(),
                class: "own",
                points: series(&|point| point.mean),
            },
            Line {
                label: "uniform pairs".into(),
                class: "uniform",
                points: series(&|point| point.uniform_mean),
            },
        ],
        bands: vec![Band {
            label: "95 % of the model",
            class: "own",
            points: report
                .series
                .iter()
                .map(|point| (point.steps as f64, point.low, point.high))
                .collect(),
        }],
        y_axis: Axis::Linear,
    }
}

/// The cost of exploration.
pub(crate) fn cost(view: &View) -> Markup {
    let (report, plot) = (&view.regret, cost_plot(view));
    let (mean, uniform) =
        (report.posterior.copeland_regret, report.posterior.uniform_copeland_regret);
    html! {
        section aria-labelledby="cost-title" {
            h2 #cost-title { "Cost of exploration" }
            @match (plot.render(), report.posterior.saved_share) {
                (Some(plot), Some(saved)) => {
                    p {
                        "About " b #regret { (quantity(mean.mean)) } " of regret (" (quantity(mean.low)) " to " (quantity(mean.high)) ") over "
                        (number(report.plug_in.steps)) " pages. Uniform pairs would have cost " b { (quantity(uniform.mean)) } ": " (compared(saved)) "."
                        @if let Some(recent) = &report.recent {
                            " The current regret is " b { (quantity(recent.mean)) } " per 1000 pages; that of uniform pairs would be " (quantity(recent.uniform)) "."
                        }
                    }
                    @if let Some(bounds) = report.bounds {
                        p {
                            "Without a model, at a confidence of " (percent(bounds.confidence)) ", the regret is between "
                            b { (quantity(bounds.low)) } " and " b { (quantity(bounds.high)) }
                            @match bounds.unsettled_pairs {
                                0 => { ": all pairs are settled." }
                                1 => { ": one pair is not settled, and can still go either way." }
                                open => { ": " (number(open as u64)) " pairs are not settled, and each of them can still go either way." }
                            }
                        }
                    }
                    (plot)
                }
                _ => { p { "Not enough data yet." } }
            }
            p.quiet {
                "Regret is the cost of pages that do not show only the best ranker: between 0 and 1 for each page. It is an estimate \
                 by a model, because the true preferences are unknown. The range in parentheses has 95 % of the draws of the model; \
                 where rankers are nearly even, the truth is outside more often than that. With new feedback, the cost of past pages is estimated again."
            }
        }
    }
}

/// The saving of the policy, as far as its interval supports it.
fn compared(saved: Saved) -> Markup {
    let between = |low: f64, high: f64| match [percent(low), percent(high)] {
        [low, high] if low == high => low,
        [low, high] => format!("{low} to {high}"),
    };
    html! {
        @if saved.low > 0.0 { b { (between(saved.low, saved.high)) " saved" } }
        @else if saved.high < 0.0 { b { "the policy cost " (between(-saved.high, -saved.low)) " more" } }
        @else { "it is not yet known which of the two is less" }
    }
}

/// The picture of the places of each ranker.
fn shown_plot(view: &View) -> Plot<'static> {
    let points = &view.checkpoints;
    let total = |index: usize| points.last().map_or(0, |last| last.shown[index]);
    let mut by_places: Vec<usize> = (0..view.ids.len()).collect();
    by_places.sort_by_key(|&index| std::cmp::Reverse(total(index)));
    let own = if by_places.len() <= LINES_MAX + 1 { by_places.len() } else { LINES_MAX };
    let (own, rest) = by_places.split_at(own);
    let line = |of: &dyn Fn(&[u64]) -> u64| -> Vec<(f64, f64)> {
        let counted = points.iter().map(|point| (point.steps as f64, of(&point.shown) as f64));
        std::iter::once((0.0, 0.0)).chain(counted).collect()
    };
    const CLASSES: [&str; LINES_MAX + 1] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7"];
    let mut lines: Vec<_> = own
        .iter()
        .zip(CLASSES)
        .map(|(&index, class)| Line {
            label: view.ids[index].clone(),
            class,
            points: line(&|shown| shown[index]),
        })
        .collect();
    if !rest.is_empty() {
        let together = line(&|shown| rest.iter().map(|&index| shown[index]).sum());
        lines.push(Line { label: format!("{} others", rest.len()), class: "c8", points: together });
    }
    let first = by_places.first().map_or("", |&index| &*view.ids[index]);
    Plot {
        name: "shown",
        summary: format!("Places on pages over time, for each ranker; {first} has the most."),
        x_label: "pages shown",
        y_label: "places on pages",
        lines,
        bands: Vec::new(),
        y_axis: Axis::Linear,
    }
}

/// The places of each ranker over time.
pub(crate) fn shown(view: &View) -> Markup {
    let plot = shown_plot(view);
    html! {
        section aria-labelledby="shown-title" {
            h2 #shown-title { "Rankers shown" }
            @match plot.render() {
                Some(plot) => {
                    p.quiet { "Each page has two places; a ranker shown alone takes both. A good policy gives an increasing share of them to the best ranker." }
                    (plot)
                }
                None => { p { "No page has been shown yet." } }
            }
        }
    }
}
