//! The forecast of an experiment that is not created yet.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::forecast::DAY_MS;
use super::super::layout::{bar, day, margin_points, moment, seconds, table, with_code};
use super::super::page::Page;
use super::fields::{Field, Kind, body, fields};
use super::flow::Parameters;
use super::form::{Errors, Values};
use crate::http::extract;
use crate::http::problem::Problem;
use crate::service::error::ServiceError;
use crate::service::reports::plan::{PlanReport, PlanRequest, planned};
use rankduel_engine::experiment_spec::ExperimentSpec;

/// The fields of a forecast, which are not those of the experiment.
pub(super) const FIELDS: [Field; 4] = fields! {
    pages_per_day: Number, "/pages_per_day", "Pages a day", "Pages on which a duel is shown; empty means no forecast.";
    difference: Share, "/difference", "Smallest difference of interest",
        "With 0.04, the best ranker wins 54 % of the pages with a winner against the second best.";
    answered: Share, "/answered", "Share of pages with a winner",
        "A page has one if its clicks prefer one of the two rankers.";
    orders: Share, "/orders", "Share of pages with an order", "It counts in place of the one before if orders decide.";
};
/// The days that there are for the experiment if it has no limit.
const DAYS: f64 = 14.0;

/// The forecast that these values ask for, if they do, of an experiment with this body. `fields` are
/// those of the form.
pub(super) async fn of(
    page: &Page,
    values: &Values,
    experiment: Map<String, Value>,
    fields: &[Field],
    errors: &mut Errors,
) -> Option<PlanReport> {
    let is_sound = errors.is_empty();
    let mut request = body(&FIELDS, values, errors);
    if values.get("pages_per_day").is_empty() {
        return None;
    }
    // if it cannot be read, the others are checked with another one
    request.entry("pages_per_day").or_insert(1.into());
    let days = match experiment.get("conclude_at") {
        Some(Value::Object(at)) => {
            let target =
                ["confidence", "margin"].into_iter().filter_map(|name| at.get_key_value(name));
            request.extend(target.map(|(name, value)| (name.clone(), value.clone())));
            at.get("max_days").and_then(Value::as_f64)
        }
        _ => None,
    };
    let window = ["answer_window_seconds", "duel_ttl_seconds"];
    if let Some(window) = window.into_iter().find_map(|name| experiment.get(name)) {
        request.insert("answer_window_seconds".into(), window.clone());
    }
    let rankers = experiment.get("rankers").and_then(Value::as_array).map_or(0, Vec::len);
    request.insert("rankers".into(), rankers.into());
    match experiment.get("decide_by") {
        Some(Value::Object(orders)) => {
            let times = ["window_seconds", "arrival_seconds"];
            let times = times.into_iter().filter_map(|name| orders.get_key_value(name));
            let alone = experiment.get_key_value("alone");
            let given = times.chain(alone).map(|(name, value)| (name.clone(), value.clone()));
            request.extend(given);
        }
        _ => drop(request.remove("orders")),
    }
    request.insert("days".into(), json!(days.unwrap_or(DAYS)));
    // nobody waits for the forecast of a form with errors
    let planned = match extract::object::<PlanRequest>(request) {
        Ok(request) if is_sound && errors.is_empty() => {
            planned(&page.state.service.reports, request).await.map(Some).map_err(Into::into)
        }
        Ok(request) => {
            ServiceError::unless_valid(request.errors()).map(|()| None).map_err(Into::into)
        }
        Err(problem) => Err(problem),
    };
    let fields = [&FIELDS[..], fields].concat();
    planned.map_err(|problem: Problem| errors.add_problem(&problem, &fields)).ok().flatten()
}

/// The fields of the forecast as a part of a query, if they ask for one: so the page of the new
/// experiment has it, too.
pub(super) fn query(values: &Values) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if values.get("pages_per_day").is_empty() {
        return String::new();
    }
    query.extend_pairs(FIELDS.map(|field| (field.name, values.get(field.name))));
    format!("&{}", query.finish())
}

/// The forecast of an experiment that was created with one, by the query of its page.
pub(super) async fn of_created(
    page: &Page,
    spec: &ExperimentSpec,
    query: &Parameters,
) -> Option<PlanReport> {
    let given = |field: &Field| Some((field.name, query.get(field.name)?.as_str()));
    let values = Values::of(&FIELDS.iter().filter_map(given).collect::<Vec<_>>());
    let experiment = json!({
        "rankers": spec.rankers,
        "conclude_at": spec.conclude_at,
        "decide_by": spec.decide_by,
        "alone": spec.alone,
        "answer_window_seconds": spec.answer_window_seconds,
    });
    let Value::Object(experiment) = experiment else { return None };
    of(page, &values, experiment, &[], &mut Errors::default()).await
}

/// A forecast of an experiment that starts at `from`, in Unix milliseconds.
pub(super) fn section(report: &PlanReport, from: i64) -> Markup {
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
        @if let Some(sentence) = dates(report, from) { p #dates { (sentence) } }
        p #forecast { (with_code(&report.sentence)) }
        @if !report.curve.is_empty() {
            (table("Days until half of experiments have a result", columns, &rows))
        }
    }
}

/// When half of such experiments have a result, and nine of ten.
fn dates(report: &PlanReport, from: i64) -> Option<String> {
    let (first, last) = (report.rosters.first()?, report.rosters.last()?);
    let by = |days: f64| {
        let at = from as f64 + days * DAY_MS as f64;
        // a date beyond the years of four digits says nothing
        if at < 1e14 { moment(at as i64, from) } else { "the year 5000".to_owned() }
    };
    let half = match report.rosters.len() {
        1 => format!("by {}", by(first.days.median)),
        _ => format!(
            "by {} if one rival is close, and by {} if all are",
            by(first.days.median),
            by(last.days.median)
        ),
    };
    Some(format!(
        "Started on {}, half of such experiments have a result {half}; nine of ten by {}.",
        day(from, from),
        by(last.days.high)
    ))
}
