//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use axum::body::Bytes;
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
    page: Page,
    Path((name, slug)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let Some(action) = Action::of_slug(&slug) else { return no_page(&page) };
    let values = Values::parse(&body);
    if let Err(refusal) = page.require_token(&values) {
        return *refusal;
    }
    let subject = match page.state.service.experiment(&name).await {
        Ok(loaded) => Subject::of(loaded),
        Err(error) => return page.problem(&error.into()),
    };
    let mut errors = Errors::default();
    let step = values.step();
    if step == Step::Edit {
        return edit(&page, action, &subject, &values, &errors, StatusCode::OK);
    }
    let outcome = match step {
        Step::Confirm => make(&page, action, &name, &values, &mut errors).await,
        _ => check(action, &subject, &values, &mut errors),
    };
    let status = match outcome {
        Ok(()) if !errors.is_empty() => StatusCode::UNPROCESSABLE_ENTITY,
        Ok(()) if step == Step::Confirm => {
            return see(&format!("{}?done={}", subject.path(), action.slug()));
        }
        Ok(()) => return ask(&page, action, &subject, &values, &errors, StatusCode::OK),
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
    match action.has_fields() {
        true => edit(&page, action, &subject, &values, &errors, status),
        false => ask(&page, action, &subject, &values, &errors, status),
    }
}

/// The explanation of a version that is not the newest.
const STALE: &str = "Somebody has changed the experiment since you opened this page, so nothing was changed. The page now \
    shows its present state. Send it again if you still want the change.";

/// What is wrong with a change before it is made, as far as the form and the spec tell.
fn check(action: Action, subject: &Subject, values: &Values, errors: &mut Errors) -> ApiResult<()> {
    if let Some(version) = version(values)?
        && version != subject.record.version
    {
        errors.add_whole(STALE);
    }
    let body = action.body(values, errors);
    if action == Action::Archive || !errors.is_empty() {
        return Ok(());
    }
    check_change(&subject.loaded.spec, extract::object::<ExperimentChange>(body)?)
}

/// Make the change.
async fn make(
    page: &Page,
    action: Action,
    name: &str,
    values: &Values,
    errors: &mut Errors,
) -> ApiResult<()> {
    let (service, by) = (&page.state.service, page.caller.actor());
    let version = version(values)?;
    if action == Action::Archive {
        return Ok(service.archive(name, version, &by).await?);
    }
    let body = action.body(values, errors);
    if !errors.is_empty() {
        return Ok(());
    }
    let body = extract::object::<ExperimentChange>(body)?;
    change_experiment(service, name, version, body, &by).await.map(drop)
}

/// The version that the form was made for.
fn version(values: &Values) -> ApiResult<Option<u64>> {
    match values.get("version").parse() {
        Ok(version) => Ok(Some(version)),
        Err(_) => Err(Problem::invalid("The form has no version of the experiment")),
    }
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
