//! The forecast of an experiment that is not created yet.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::layout::{bar, margin_points, seconds, table, with_code};
use super::super::page::Page;
use super::fields::{Field, Kind, body, fields};
use super::form::{Errors, Values};
use crate::http::extract;
use crate::service::reports::plan::{PlanReport, PlanRequest, planned};

/// The fields of a forecast, which are not those of the experiment.
pub(super) const FIELDS: [Field; 3] = fields! {
    pages_per_day: Number, "/pages_per_day", "Pages a day", "Pages on which a duel is shown; empty means no forecast.";
    difference: Number, "/difference", "Smallest difference of interest",
        "With 0.04, the best ranker wins 54 % of the pages with a winner against the second best.";
    answered: Number, "/answered", "Share of pages with a winner",
        "A page has one if its clicks prefer one of the two rankers.";
};
/// The days that there are for the experiment if it has no limit.
const DAYS: f64 = 14.0;

/// The forecast of the form, if it asks for one. `fields` are those of the experiment.
pub(super) async fn of(
    page: &Page,
    values: &Values,
    fields: &[Field],
    errors: &mut Errors,
) -> Option<PlanReport> {
    let mut request = body(&FIELDS, values, errors);
    let experiment = body(fields, values, errors);
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
    let days = values.get("max_days").parse().unwrap_or(DAYS);
    request.insert("days".into(), json!(days));
    let planned = match extract::object::<PlanRequest>(request) {
        Ok(request) => planned(&page.state.service.reports, request).await.map_err(Into::into),
        Err(problem) => Err(problem),
    };
    let fields = [&FIELDS[..], fields].concat();
    planned.map_err(|problem| errors.add_problem(&problem, &fields)).ok()
}

pub(super) fn section(report: &PlanReport) -> Markup {
    let days = |days: f64| seconds(86_400.0 * days);
    let all = report.curve.iter().map(|of| of.longest).fold(0.0, f64::max);
    let is_range = report.rosters.len() > 1;
    let rows = html! { @for of in report.curve.iter().rev() { tr {
        th scope="row" { (margin_points(of.difference)) }
        @if is_range { td { (days(of.shortest)) } }
        td { (days(of.longest)) }
        td { (bar(of.longest / all)) }
    } } };
    let columns: &[&str] = match is_range {
        true => &["Lead of the best ranker", "One close rival", "All rivals equal", "Picture"],
        false => &["Lead of the best ranker", "Half of experiments", "Picture"],
    };
    html! {
        p #forecast { (with_code(&report.sentence)) }
        @if !report.curve.is_empty() {
            (table("Days until half of experiments have a result", columns, &rows))
        }
    }
}
