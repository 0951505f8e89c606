//! `/experiments/{name}/manage/{action}`: one change of an experiment.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::action::{Action, Subject};
use super::form::{Confirmation, Errors, Fields, Step, Values, step_button, token_field};
use super::page::{Page, Refusal, Submission, see};
use super::{methods, policies};
use crate::http::experiments::change::{ExperimentChange, change_experiment, check_change};
use crate::http::extract;
use crate::http::problem::{ApiResult, Problem, ProblemKind};
use crate::service::lifecycle;

#[derive(Deserialize)]
pub(crate) struct ChangeQuery {
    ranker: Option<String>,
}

/// The form of a change, or the question whether to make it.
pub(crate) async fn show(
    page: Page,
    Path((name, slug)): Path<(String, String)>,
    Query(query): Query<ChangeQuery>,
) -> Result<Response, Refusal> {
    let action = Action::of_slug(&slug).ok_or_else(|| page.missing())?;
    let subject = Subject::read(&page, &name).await?;
    let chosen = query.ranker.filter(|id| subject.active().contains(&id.as_str()));
    let values = initial(action, &subject, chosen.as_deref());
    let write = if chosen.is_some() || !action.has_fields() { ask } else { edit };
    Ok(write(&page, action, &subject, &values, &Errors::default(), StatusCode::OK))
}

/// Check a change, or make it.
pub(crate) async fn submit(
    Path((name, slug)): Path<(String, String)>,
    Submission { page, values }: Submission,
) -> Result<Response, Refusal> {
    let action = Action::of_slug(&slug).ok_or_else(|| page.missing())?;
    let subject = Subject::read(&page, &name).await?;
    let (step, mut errors) = (values.step(), Errors::default());
    let outcome = match step {
        Step::Edit => {
            return Ok(edit(&page, action, &subject, &values, &errors, StatusCode::OK));
        }
        Step::Confirm => make(&page, &values, action, &name, &mut errors).await,
        Step::Review => check(&values, action, &subject, &mut errors),
    };
    let status = match outcome {
        Ok(()) if !errors.is_empty() => StatusCode::UNPROCESSABLE_ENTITY,
        Ok(()) if step == Step::Confirm => {
            return Ok(see(&format!("{}?done={}", subject.path(), action.slug())));
        }
        Ok(()) => return Ok(ask(&page, action, &subject, &values, &errors, StatusCode::OK)),
        Err(problem) if problem.kind() == ProblemKind::PreconditionFailed => {
            errors.add_whole(STALE);
            problem.kind().status()
        }
        Err(problem) => errors.add_problem(&problem, action.pointers()),
    };
    // The newest version: another change may have come first.
    let subject = Subject::read(&page, &name).await?;
    let write = if action.has_fields() { edit } else { ask };
    Ok(write(&page, action, &subject, &values, &errors, status))
}

/// The explanation of a version that is not the newest.
const STALE: &str = "Somebody has changed the experiment since you opened this page, so nothing was changed. The page now \
    shows its present state. Send it again if you still want the change.";

/// Errors of a change before it is made, as far as the form and the spec tell.
fn check(values: &Values, action: Action, subject: &Subject, errors: &mut Errors) -> ApiResult<()> {
    if version(values)? != subject.record.version {
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
    values: &Values,
    action: Action,
    name: &str,
    errors: &mut Errors,
) -> ApiResult<()> {
    let (service, by) = (&page.state.service, page.caller.actor());
    let version = Some(version(values)?);
    if action == Action::Archive {
        return Ok(lifecycle::archive(service, name, version, &by).await?);
    }
    let body = action.body(values, errors);
    if !errors.is_empty() {
        return Ok(());
    }
    let body = extract::object::<ExperimentChange>(body)?;
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

/// The values that a form starts with. `chosen` is the ranker that a link has chosen, if any.
fn initial(action: Action, subject: &Subject, chosen: Option<&str>) -> Values {
    match action {
        Action::Conclude => Values::default().with("winner", subject.leader()),
        Action::Policy => Values::default().with("policy", subject.loaded.spec.policy.kind()),
        Action::Interleaving => methods::values(&subject.method().unwrap_or_default()),
        Action::Retire => Values::default().with("ranker", chosen.unwrap_or_default()),
        Action::Enlist | Action::Pause | Action::Resume | Action::Archive => Values::default(),
    }
}

/// The form of a change.
fn form(
    action: Action,
    subject: &Subject,
    values: &Values,
    errors: &Errors,
    token: &str,
) -> Markup {
    let fields = Fields { values, errors };
    html! {
        form.fields method="post" action={ (subject.path()) "/" (action.slug()) } {
            (token_field(token))
            input type="hidden" name="version" value=(subject.record.version);
            @match action {
                Action::Conclude => { (ranker(&fields, subject, "winner", "Winner",
                    "The ranker that every request is answered with from then on.")) }
                Action::Retire => { (ranker(&fields, subject, "ranker", "Ranker",
                    "The ranker that is never shown again.")) }
                Action::Enlist => {
                    (fields.text("ranker", "Id of the ranker",
                        "The name by which your backend knows it, 1 to 128 characters; one that no ranker here has had."))
                    (fields.text("description", "Description",
                        "What makes it different, for people; you can leave it empty."))
                }
                Action::Policy => { (policies::fields(&fields)) }
                Action::Interleaving => { (methods::fields(&fields)) }
                Action::Pause | Action::Resume | Action::Archive => {}
            }
            div.buttons {
                (step_button(Step::Review, "Continue", "main"))
                a.button.other href=(subject.path()) { "Cancel" }
            }
        }
    }
}

fn ranker(fields: &Fields<'_>, subject: &Subject, name: &str, label: &str, help: &str) -> Markup {
    let active = subject.active();
    let options: Vec<_> = active.iter().map(|id| (*id, *id)).collect();
    fields.select(name, label, help, &options)
}
