//! The forecast of an experiment that is not created yet: a picture, and its numbers in words.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::chart::{Chart, Line, ticks};
use super::super::layout::{quantity, with_code};
use super::create::rankers;
use super::form::{Errors, Fields, Values};
use super::page::Page;
use crate::http::extract;
use crate::service::reports::plan::{DaysOf, PlanReport, PlanRequest, planned};

/// The field for each start of a JSON pointer, besides those of the experiment.
pub(super) const POINTERS: [(&str, &str); 3] =
    [("/difference", "difference"), ("/pages_per_day", "pages_per_day"), ("/answered", "answered")];
/// The days that the picture is about if there is no limit.
const DAYS: f64 = 14.0;

/// The fields of a forecast.
pub(super) fn fields(fields: &Fields<'_>) -> Markup {
    html! {
        p.help { "With the pages a day, this page and the next one say how long the experiment takes. Nothing of it is a setting." }
        div.pair {
            (fields.number("pages_per_day", "Pages a day", "Pages on which a duel is shown; empty means no forecast."))
            (fields.number("difference", "Smallest difference of interest",
                "With 0.04, the best ranker wins 54 % of the pages with a winner against the second best."))
            (fields.number("answered", "Share of pages with a winner",
                "A page has one if its clicks prefer one of the two rankers."))
        }
    }
}

/// The days that there are for the experiment.
pub(super) fn days(values: &Values) -> f64 {
    values.get("max_days").parse().unwrap_or(DAYS)
}

/// The forecast of the form, if it asks for one.
pub(super) async fn of(page: &Page, values: &Values, errors: &mut Errors) -> Option<PlanReport> {
    let own = ["pages_per_day", "difference", "answered", "confidence", "margin"];
    let number = |name: &'static str| Some((name.to_owned(), values.number(name, errors)?));
    let mut request: Map<String, Value> = own.into_iter().filter_map(number).collect();
    if !request.contains_key("pages_per_day") || !errors.is_empty() {
        return None;
    }
    request.insert("rankers".into(), rankers(values).len().into());
    request.insert("days".into(), json!(days(values)));
    let planned = match extract::object::<PlanRequest>(request) {
        Ok(request) => planned(&page.state.service.reports, request).await.map_err(Into::into),
        Err(problem) => Err(problem),
    };
    let fields = [&POINTERS[..], &super::create::POINTERS, &[("/days", "max_days")]].concat();
    planned.map_err(|problem| errors.add_problem(&problem, &fields)).ok()
}

/// The forecast.
pub(super) fn section(report: &PlanReport, days: f64) -> Markup {
    html! {
        p #forecast { (with_code(&report.sentence)) }
        @if let Some(chart) = chart(report, days) {
            figure {
                figcaption.small.quiet { "The difference of the two best rankers, in points, over the days until it is shown" }
                (chart.render())
            }
        }
    }
}

/// Differences over days, both from the simulations; the days in logarithms.
fn chart(report: &PlanReport, days: f64) -> Option<Chart> {
    let [first, .., last] = &report.curve[..] else { return None };
    let all = report.curve.iter().flat_map(|of| [Some(of.days.median), of.days.high]);
    let all = all.flatten().chain([days]).filter(|days| *days > 0.0);
    let (low, high) = all.fold((days, days), |(low, high), at| (low.min(at), high.max(at)));
    let at = |days: f64| (days / low).ln() / (high / low).ln().max(1e-9);
    let (top, y_ticks) = ticks(100.0 * last.difference, false);
    let line = |label: &str, colour, of: fn(&DaysOf) -> Option<f64>| Line {
        label: label.into(),
        colour,
        points: (report.curve.iter().rev())
            .filter_map(|point| Some((at(of(point)?), 100.0 * point.difference / top)))
            .collect(),
        preview: Vec::new(),
    };
    let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let marks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|of| of * 10f64.powi(power)));
    let marks: Vec<f64> = marks.filter(|days| (low..=high).contains(days)).collect();
    let every = marks.len() / 6 + 1;
    Some(Chart {
        summary: format!(
            "Days until a difference is shown: {} by the median for {} points, {} for {} points.",
            quantity(first.days.median),
            quantity(100.0 * first.difference),
            quantity(last.days.median),
            quantity(100.0 * last.difference)
        ),
        lines: vec![
            line("half of them", 1, |of| Some(of.days.median)),
            line("nine of ten", 2, |of| of.days.high),
        ],
        x_ticks: (marks.iter().step_by(every))
            .map(|&days| (at(days), format!("{days} d")))
            .collect(),
        y_ticks,
        now: Some(at(days)),
        ..Chart::default()
    })
}
