//! The forecast of an experiment that is not created yet: a picture, and its numbers in words.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::chart::{Chart, Line, ticks};
use super::super::layout::{quantity, with_code};
use super::super::page::Page;
use super::create;
use super::fields::{Field, Kind, body, fields};
use super::form::{Errors, Values};
use crate::http::extract;
use crate::service::reports::plan::{DaysOf, PlanReport, PlanRequest, planned};

/// The fields of a forecast, which are not those of the experiment.
pub(super) const FIELDS: [Field; 3] = fields! {
    pages_per_day: Number, "/pages_per_day", "Pages a day", "Pages on which a duel is shown; empty means no forecast.";
    difference: Number, "/difference", "Smallest difference of interest",
        "With 0.04, the best ranker wins 54 % of the pages with a winner against the second best.";
    answered: Number, "/answered", "Share of pages with a winner",
        "A page has one if its clicks prefer one of the two rankers.";
};
/// The days that the picture is about if there is no limit.
const DAYS: f64 = 14.0;

/// The days that there are for the experiment.
pub(super) fn days(values: &Values) -> f64 {
    values.get("max_days").parse().unwrap_or(DAYS)
}

/// The forecast of the form, if it asks for one.
pub(super) async fn of(page: &Page, values: &Values, errors: &mut Errors) -> Option<PlanReport> {
    let mut request = body(&FIELDS, values, errors);
    let experiment = body(&create::fields(), values, errors);
    if !request.contains_key("pages_per_day") || !errors.is_empty() {
        return None;
    }
    if let Some(Value::Object(at)) = experiment.get("conclude_at") {
        let target = |(name, _): &(&String, _)| ["confidence", "margin"].contains(&name.as_str());
        let target = at.iter().filter(target);
        request.extend(target.map(|(name, value)| (name.clone(), value.clone())));
    }
    let rankers = experiment.get("rankers").and_then(Value::as_array).map_or(0, Vec::len);
    request.insert("rankers".into(), rankers.into());
    request.insert("days".into(), json!(days(values)));
    let planned = match extract::object::<PlanRequest>(request) {
        Ok(request) => planned(&page.state.service.reports, request).await.map_err(Into::into),
        Err(problem) => Err(problem),
    };
    let fields = [&FIELDS[..], &create::fields()].concat();
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
