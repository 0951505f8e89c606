//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use std::sync::Arc;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::action::{Action, Subject};
use super::action_form::{form, initial};
use super::confirm::Confirmation;
use super::form::{Errors, Step, Values};
use super::page::{Page, no_page, see};
use super::submission::Submission;
use crate::http::experiments::change::{ExperimentChange, change_experiment, check_change};
use crate::http::extract;
use crate::http::problem::{ApiResult, Problem, ProblemKind};

#[derive(Deserialize)]
pub(crate) struct ChangeQuery {
    ranker: Option<String>,
}

/// The form of a change, or the question whether to make it.
pub(crate) async fn show(
    page: Page,
    Path((name, slug)): Path<(String, String)>,
    Query(query): Query<ChangeQuery>,
) -> Response {
    let Some(action) = Action::of_slug(&slug) else { return no_page(&page) };
    let subject = match page.state.service.experiment(&name).await {
        Ok(loaded) => Subject::of(loaded),
        Err(error) => return page.problem(&error.into()),
    };
    let chosen = query.ranker.filter(|id| subject.active().contains(&id.as_str()));
    let values = initial(action, &subject, chosen.as_deref());
    if action.refusal(&subject).is_none() && (chosen.is_some() || !action.has_fields()) {
        return ask(&page, action, &subject, &values, &Errors::default(), StatusCode::OK);
    }
    edit(&page, action, &subject, &values, &Errors::default(), StatusCode::OK)
}

/// Check a change, or make it.
pub(crate) async fn submit(
    Path((name, slug)): Path<(String, String)>,
    form: Submission,
) -> Response {
    let page = form.page();
    let Some(action) = Action::of_slug(&slug) else { return no_page(page) };
    let subject = match page.state.service.experiment(&name).await {
        Ok(loaded) => Subject::of(loaded),
        Err(error) => return page.problem(&error.into()),
    };
    let mut errors = Errors::default();
    let outcome = match form.step() {
        Step::Edit => {
            let ok = StatusCode::OK;
            return form
                .show(move |page, values| edit(page, action, &subject, values, &errors, ok))
                .await;
        }
        Step::Confirm => make(&form, action, &name, &mut errors).await,
        Step::Review => check(&form, action, &subject, &mut errors).await,
    };
    let status = match outcome {
        Ok(()) if !errors.is_empty() => StatusCode::UNPROCESSABLE_ENTITY,
        Ok(()) if form.step() == Step::Confirm => {
            return see(&format!("{}?done={}", subject.path(), action.slug()));
        }
        Ok(()) => {
            let ok = StatusCode::OK;
            return form
                .show(move |page, values| ask(page, action, &subject, values, &errors, ok))
                .await;
        }
        Err(problem) => {
            match problem.kind() {
                ProblemKind::PreconditionFailed => errors.add_whole(STALE),
                _ => errors.add_problem(&problem, action.pointers()),
            }
            problem.kind().status()
        }
    };
    // The newest version: another change may have come first.
    let subject = match page.state.service.experiment(&name).await {
        Ok(loaded) => Subject::of(loaded),
        Err(error) => return page.problem(&error.into()),
    };
    let write = match action.has_fields() {
        true => edit,
        false => ask,
    };
    form.show(move |page, values| write(page, action, &subject, values, &errors, status)).await
}

/// The explanation of a version that is not the newest.
const STALE: &str = "Somebody has changed the experiment since you opened this page, so nothing was changed. The page now \
    shows its present state. Send it again if you still want the change.";

/// Errors of a change before it is made, as far as the form and the spec tell.
async fn check(
    form: &Submission,
    action: Action,
    subject: &Subject,
    errors: &mut Errors,
) -> ApiResult<()> {
    let (newest, loaded) = (subject.record.version, Arc::clone(&subject.loaded));
    let read = move |_: &Page, values: &Values| {
        let mut errors = Errors::default();
        let mut check = || {
            if version(values)? != newest {
                errors.add_whole(STALE);
            }
            let body = action.body(values, &mut errors);
            if action == Action::Archive || !errors.is_empty() {
                return Ok(());
            }
            check_change(&loaded.spec, extract::object::<ExperimentChange>(body)?)
        };
        let checked = check();
        (errors, checked)
    };
    let (found, checked) = form.read(read).await?;
    *errors = found;
    checked
}

/// Make the change.
async fn make(form: &Submission, action: Action, name: &str, errors: &mut Errors) -> ApiResult<()> {
    let read = move |_: &Page, values: &Values| {
        let mut errors = Errors::default();
        let body = action.body(values, &mut errors);
        let has_body = action != Action::Archive && errors.is_empty();
        let body = has_body.then(|| extract::object::<ExperimentChange>(body));
        (version(values), errors, body)
    };
    let (version, found, body) = form.read(read).await?;
    let (service, by) = (&form.page().state.service, form.page().caller.actor());
    let version = Some(version?);
    if action == Action::Archive {
        return Ok(service.archive(name, version, &by).await?);
    }
    *errors = found;
    let Some(body) = body.transpose()? else { return Ok(()) };
    change_experiment(service, name, version, body, &by).await.map(drop)
}

/// The version that the form was made for.
fn version(values: &Values) -> ApiResult<u64> {
    let version = values.get("version").parse();
    version.map_err(|_| Problem::invalid("The form has no version of the experiment"))
}

/// The form of a change, or why there is none.
fn edit(
    page: &Page,
    action: Action,
    subject: &Subject,
    values: &Values,
    errors: &Errors,
    status: StatusCode,
) -> Response {
    let refusal = action.refusal(subject);
    let main = html! {
        (back(subject))
        h1 { (action.title()) }
        (errors.summary())
        @match refusal {
            Some(refusal) => { p { (refusal) } p { a.button href=(subject.path()) { "Back" } } }
            None => section { (form(action, subject, values, errors, &page.token())) }
        }
    };
    page.respond(status, action.title(), &main)
}

/// The question whether to make a change.
fn ask(
    page: &Page,
    action: Action,
    subject: &Subject,
    values: &Values,
    errors: &Errors,
    status: StatusCode,
) -> Response {
    if action.refusal(subject).is_some() {
        return edit(page, action, subject, values, errors, status);
    }
    let values = values.clone().with("version", subject.record.version.to_string());
    let (back, path) = (subject.path(), format!("{}/{}", subject.path(), action.slug()));
    let confirmation = Confirmation {
        title: action.title(),
        sentence: action.sentence(subject, &values),
        details: Markup::default(),
        path: &path,
        token: &page.token(),
        values: &values,
        errors,
        button: action.title(),
        is_final: action.is_final(),
        has_form: action.has_fields(),
        back: &back,
    };
    let main = html! { (self::back(subject)) (confirmation.page()) };
    page.respond(status, action.title(), &main)
}

fn back(subject: &Subject) -> Markup {
    html! {
        p.quiet { a href=(subject.path()) { "Manage " (subject.record.name) } }
    }
}
