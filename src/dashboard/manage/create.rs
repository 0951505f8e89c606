//! `/new-experiment`: creates an experiment.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::super::layout::{number, percent};
use super::super::parts::fact;
use super::confirm::Confirmation;
use super::form::{Errors, Step, Values};
use super::new_experiment::{PATH, POINTERS, body, form, initial};
use super::page::{Page, see};
use super::policies;
use crate::engine::experiment_spec::{ExperimentSpec, name_error};
use crate::http::experiments::create::{NewExperimentBody, create_experiment, spec_of};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::error::ServiceError;
use crate::service::reports::time_to_verdict::TimeToVerdict;

const TITLE: &str = "New experiment";

/// The form.
pub(crate) async fn show(page: Page) -> Response {
    edit(&page, &initial(), &Errors::default(), StatusCode::OK)
}

/// Check a new experiment, or create it.
pub(crate) async fn submit(page: Page, submitted: Bytes) -> Response {
    let values = Values::parse(&submitted);
    if let Err(refusal) = page.require_token(&values) {
        return *refusal;
    }
    let mut errors = Errors::default();
    let outcome = match values.step() {
        Step::Edit => return edit(&page, &values, &errors, StatusCode::OK),
        Step::Review => review(&page, &values, &mut errors).await,
        Step::Confirm => create(&page, &values, &mut errors).await,
    };
    match outcome {
        Ok(Some(response)) => response,
        Ok(None) => edit(&page, &values, &errors, StatusCode::UNPROCESSABLE_ENTITY),
        Err(problem) => {
            errors.add_problem(&problem, &POINTERS);
            edit(&page, &values, &errors, problem.kind().status())
        }
    }
}

/// The question whether to create the experiment; `None` with errors.
async fn review(page: &Page, values: &Values, errors: &mut Errors) -> ApiResult<Option<Response>> {
    let body = body(values, errors);
    let body = extract::object::<NewExperimentBody>(body)?;
    let (name, spec) = spec_of(body)?;
    page.caller.require_experiment(&name)?;
    let invalid: Vec<_> = name_error(&name).into_iter().chain(spec.errors()).collect();
    if !invalid.is_empty() {
        return Err(ServiceError::Invalid(invalid).into());
    }
    if page.state.service.experiment(&name).await.is_ok() {
        errors.add("name", format!("there is an experiment `{name}` already; choose another name"));
    }
    if !errors.is_empty() {
        return Ok(None);
    }
    let times = page.state.service.times_to_verdict(&spec).await?;
    let confirmation = Confirmation {
        title: TITLE,
        sentence: html! {
            "Experiment " code { (name) } " will start at once: it issues duels of its "
            (spec.rankers.len()) " rankers to every backend that requests them."
        },
        details: html! { (details(&spec)) (outlook(&times)) },
        path: PATH,
        token: &page.token(),
        values,
        errors,
        button: "Create the experiment",
        is_final: false,
        has_form: true,
        back: "/",
    };
    Ok(Some(page.respond(StatusCode::OK, TITLE, &confirmation.page())))
}

fn details(spec: &ExperimentSpec) -> Markup {
    html! {
        dl.facts {
            (fact("Rankers", &html! { (number(spec.rankers.len() as u64)) }))
            (fact("Policy", &policies::described(&spec.policy)))
            (fact("Concludes", &super::overview::concludes(spec)))
        }
    }
}

/// How long the verdict takes.
fn outlook(times: &[TimeToVerdict]) -> Markup {
    html! {
        @if !times.is_empty() {
            h2 { "How long it takes" }
            p {
                "By simulation of this policy, if the best ranker wins this share of its duels against each other ranker and "
                "the others are even:"
            }
            ul #outlook { @for time in times { li {
                (percent(time.win_rate)) ": "
                @match time.pages {
                    Ok(pages) => { "about " b { (number(rounded(pages))) } " pages to the verdict" }
                    Err(pages) => { "more than " (number(rounded(pages))) " pages" }
                }
            } } }
            p.quiet { "Only pages with a click count, and only one of each unit if your backend names units." }
        }
    }
}

/// A number with two significant digits.
fn rounded(pages: u64) -> u64 {
    let digits = pages.checked_ilog10().unwrap_or(0).saturating_sub(1);
    let unit = 10u64.pow(digits);
    (pages + unit / 2) / unit * unit
}

/// Create the experiment; `None` with errors.
async fn create(page: &Page, values: &Values, errors: &mut Errors) -> ApiResult<Option<Response>> {
    let body = body(values, errors);
    if !errors.is_empty() {
        return Ok(None);
    }
    let body = extract::object::<NewExperimentBody>(body)?;
    let (loaded, _) = create_experiment(&page.state, &page.caller, body).await?;
    Ok(Some(see(&format!("/experiments/{}/manage?done=created", loaded.name))))
}

fn edit(page: &Page, values: &Values, errors: &Errors, status: StatusCode) -> Response {
    let main = html! {
        h1 { (TITLE) }
        p.quiet { "The experiment starts after you confirm it on the next page. The API takes some more settings." }
        (errors.summary())
        (form(values, errors, &page.token()))
    };
    page.respond(status, TITLE, &main)
}
