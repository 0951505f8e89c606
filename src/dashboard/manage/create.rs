//! `/new-experiment`: creates an experiment.

use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use super::super::layout::number;
use super::super::parts::fact;
use super::confirm::Confirmation;
use super::form::{Errors, Step, Values};
use super::new_experiment::{PATH, POINTERS, body, form, initial};
use super::page::{Page, see};
use super::policies;
use super::submission::Submission;
use crate::http::experiments::create::{NewExperimentBody, create_experiment, spec_of};
use crate::http::extract;
use crate::http::problem::ApiResult;
use crate::service::error::ServiceError;
use rankduel_engine::experiment_spec::{ExperimentSpec, name_error};

const TITLE: &str = "New experiment";

/// The form.
pub(crate) async fn show(page: Page) -> Response {
    edit(&page, &initial(), &Errors::default(), StatusCode::OK)
}

/// Check a new experiment, or create it.
pub(crate) async fn submit(form: Submission) -> Response {
    let mut errors = Errors::default();
    let outcome = match form.step() {
        Step::Edit => return edit_again(&form, errors, StatusCode::OK).await,
        Step::Review => review(&form, &mut errors).await,
        Step::Confirm => create(&form, &mut errors).await,
    };
    match outcome {
        Ok(Some(response)) => response,
        Ok(None) => edit_again(&form, errors, StatusCode::UNPROCESSABLE_ENTITY).await,
        Err(problem) => {
            errors.add_problem(&problem, &POINTERS);
            edit_again(&form, errors, problem.kind().status()).await
        }
    }
}

/// The question whether to create the experiment; `None` with errors.
async fn review(form: &Submission, errors: &mut Errors) -> ApiResult<Option<Response>> {
    let read = |page: &Page, values: &Values| {
        let mut errors = Errors::default();
        let checked = check(page, values, &mut errors);
        (errors, checked)
    };
    let (found, checked) = form.read(read).await?;
    *errors = found;
    let (name, spec) = checked?;
    let service = &form.page().state.service;
    if service.experiment(&name).await.is_ok() {
        errors.add("name", format!("there is an experiment `{name}` already; choose another name"));
    }
    if !errors.is_empty() {
        return Ok(None);
    }
    let ask = move |page: &Page, values: &Values| ask(page, values, &name, &spec);
    Ok(Some(form.show(ask).await))
}

/// The name and the spec in a form, if both are valid and the caller's key includes the name.
fn check(page: &Page, values: &Values, errors: &mut Errors) -> ApiResult<(String, ExperimentSpec)> {
    let body = body(values, errors);
    let body = extract::object::<NewExperimentBody>(body)?;
    let (name, spec) = spec_of(body)?;
    page.caller.require_experiment(&name)?;
    let invalid: Vec<_> = name_error(&name).into_iter().chain(spec.errors()).collect();
    match invalid.is_empty() {
        true => Ok((name, spec)),
        false => Err(ServiceError::Invalid(invalid).into()),
    }
}

fn ask(page: &Page, values: &Values, name: &str, spec: &ExperimentSpec) -> Response {
    let confirmation = Confirmation {
        title: TITLE,
        sentence: html! {
            "Experiment " code { (name) } " will start at once: it issues duels of its "
            (spec.rankers.len()) " rankers to every backend that requests them."
        },
        details: html! {
            dl.facts {
                (fact("Rankers", &html! { (number(spec.rankers.len() as u64)) }))
                (fact("Policy", &policies::described(&spec.policy)))
                (fact("Concludes", &super::overview::concludes(spec)))
            }
        },
        path: PATH,
        token: &page.token(),
        values,
        errors: &Errors::default(),
        button: "Create the experiment",
        is_final: false,
        has_form: true,
        back: "/",
    };
    page.respond(StatusCode::OK, TITLE, &confirmation.page())
}

/// Create the experiment; `None` with errors.
async fn create(form: &Submission, errors: &mut Errors) -> ApiResult<Option<Response>> {
    let read = |_: &Page, values: &Values| {
        let mut errors = Errors::default();
        let body = body(values, &mut errors);
        let body = errors.is_empty().then(|| extract::object::<NewExperimentBody>(body));
        (errors, body)
    };
    let (found, body) = form.read(read).await?;
    *errors = found;
    let Some(body) = body.transpose()? else { return Ok(None) };
    let page = form.page();
    let (loaded, _) = create_experiment(&page.state, &page.caller, body).await?;
    Ok(Some(see(&format!("/experiments/{}/manage?done=created", loaded.name))))
}

async fn edit_again(form: &Submission, errors: Errors, status: StatusCode) -> Response {
    form.show(move |page, values| edit(page, values, &errors, status)).await
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
