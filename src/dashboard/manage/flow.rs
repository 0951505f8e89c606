//! The steps of every change: a form, a question that says what will happen, and the change itself.

use std::collections::HashMap;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::super::layout::with_code;
use super::super::page::Page;
use super::fields::{self, Field, Form};
use super::form::{Errors, FORM_TOKEN, Step, Values, default_button, step_button};
use super::submission::Submission;
use crate::http::problem::{ApiResult, Problem, ProblemKind};

/// The parameters of a path or of a query.
pub(super) type Parameters = HashMap<String, String>;

/// The words of the form and of the question of a change.
#[derive(Default)]
pub(super) struct About {
    /// The change in a few words.
    pub title: &'static str,
    pub button: &'static str,
    /// The path that takes the form.
    pub path: String,
    /// The page that leads to it: its path and its name.
    pub back: (String, String),
    pub is_final: bool,
    /// Why it is not possible now, as a sentence.
    pub refusal: Option<String>,
    /// The version of the experiment that it changes.
    pub version: Option<u64>,
}

/// The question whether to make a change.
#[derive(Default)]
pub(super) struct Question {
    /// The effect in a sentence or two.
    pub sentence: Markup,
    /// More about it, if there is anything.
    pub details: Markup,
}

/// A change that somebody makes on a page.
pub(super) trait Change: Sized {
    /// The change at this path, with the present state of what it changes.
    async fn of(page: &Page, path: &Parameters) -> ApiResult<Self>;

    fn about(&self) -> About;

    /// The fields of its form; none for a change without values.
    fn fields(&self) -> Vec<Field> {
        Vec::new()
    }

    /// The values that its form starts with.
    fn initial(&self) -> Values {
        Values::default()
    }

    /// Whether these values of a link are all that it asks for.
    fn is_complete(&self, _: &Values) -> bool {
        false
    }

    /// Ids of the rankers that its form offers.
    fn rankers(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Its form: the fields, and more about them.
    fn form(&self, form: &Form<'_>) -> Markup {
        form.fields(&self.fields())
    }

    /// The body for the operation of the API.
    fn body(&self, values: &Values, errors: &mut Errors) -> Map<String, Value> {
        fields::body(&self.fields(), values, errors)
    }

    /// Compute what the form or the question shows besides.
    async fn prepare(&mut self, _: &Page, _: &Values, _: &mut Errors) {}

    /// Check a body as far as that is possible before the change is made.
    async fn check(&self, _: &Page, _: Map<String, Value>) -> ApiResult<()> {
        Ok(())
    }

    /// The question whether to make the change.
    fn question(&self, page: &Page, values: &Values) -> Question;

    /// Make the change of a body, which these values describe.
    async fn make(
        &self,
        page: &Page,
        values: &Values,
        body: Map<String, Value>,
    ) -> ApiResult<Response>;
}

/// The form of a change, or the question whether to make it. A link can name values of the form.
pub(super) async fn show<C: Change>(
    page: Page,
    Path(path): Path<Parameters>,
    Query(query): Query<Parameters>,
) -> ApiResult<Response> {
    let change = C::of(&page, &path).await?;
    let mut values = change.initial();
    for Field { name, .. } in change.fields() {
        if let Some(value) = query.get(name) {
            values = values.with(name, value);
        }
    }
    let errors = Errors::default();
    Ok(match change.is_complete(&values) {
        true => ask(&page, &change, &values, &errors, StatusCode::OK),
        false => edit(&page, &change, &values, &errors, StatusCode::OK),
    })
}

/// The explanation of a form that another session has opened.
const OTHER_SESSION: &str = "The form was not made for this session, so nothing was changed: you have logged in since. Check \
    it, and send it again.";

/// Take the step of a submission.
pub(super) async fn submit<C: Change>(
    Path(path): Path<Parameters>,
    Submission { page, values, is_of_session }: Submission,
) -> ApiResult<Response> {
    let (page, values, change) = (&page, &values, C::of(&page, &path).await?);
    let (step, mut errors) = (values.step(), Errors::default());
    if !is_of_session {
        errors.add_whole(OTHER_SESSION);
        return Ok(edit(page, &change, values, &errors, StatusCode::FORBIDDEN));
    }
    let done = match step {
        Step::Edit => Ok(None),
        Step::Review | Step::Confirm => check_or_make(page, &change, values, &mut errors).await,
    };
    if let Ok(Some(response)) = done {
        return Ok(response);
    }
    // another change may have come first
    let mut change = C::of(page, &path).await?;
    if step != Step::Confirm {
        change.prepare(page, values, &mut errors).await;
    }
    let status = match done {
        Err(problem) => errors.add_problem(&problem, &change.fields()),
        Ok(_) if !errors.is_empty() => StatusCode::UNPROCESSABLE_ENTITY,
        Ok(_) if step == Step::Review => {
            return Ok(ask(page, &change, values, &errors, StatusCode::OK));
        }
        Ok(_) => StatusCode::OK,
    };
    Ok(edit(page, &change, values, &errors, status))
}

/// Make a change that was confirmed and can be read, or else check it. `None` if it was not made.
async fn check_or_make(
    page: &Page,
    change: &impl Change,
    values: &Values,
    errors: &mut Errors,
) -> ApiResult<Option<Response>> {
    let version = change.about().version.map(|version| version.to_string());
    if version.is_some_and(|version| version != values.get("version")) {
        let detail = "The form is of another version.";
        return Err(Problem::new(ProblemKind::PreconditionFailed, detail));
    }
    let body = change.body(values, errors);
    match values.step() {
        Step::Confirm if errors.is_empty() => change.make(page, values, body).await.map(Some),
        // also if a value cannot be read: all errors are shown at once
        _ => change.check(page, body).await.map(|()| None),
    }
}

/// The form of a change, or the question if it asks for no values.
fn edit(
    page: &Page,
    change: &impl Change,
    values: &Values,
    errors: &Errors,
    status: StatusCode,
) -> Response {
    if change.fields().is_empty() {
        return ask(page, change, values, errors, status);
    }
    let about = change.about();
    let fields = change.form(&Form { values, errors, rankers: &change.rankers() });
    let form = html! {
        form.fields method="post" action=(about.path) {
            (default_button(Step::Review))
            (hidden(page, &about))
            (fields)
            div.buttons {
                (step_button(Step::Review, "Continue", "main"))
                a.button.other href=(about.back.0) { "Cancel" }
            }
        }
    };
    respond(page, &about, errors, status, &form)
}

/// The question whether to make a change.
pub(super) fn ask(
    page: &Page,
    change: &impl Change,
    values: &Values,
    errors: &Errors,
    status: StatusCode,
) -> Response {
    let (Question { sentence, details }, about) = (change.question(page, values), change.about());
    let has_form = !change.fields().is_empty();
    let question = html! {
        section.confirm aria-labelledby="confirm-title" {
            h2 #confirm-title { "What will happen" }
            p.sentence #sentence { (sentence) }
            @if about.is_final { p { b { "This cannot be undone." } } }
            (details)
            form method="post" action=(about.path) {
                (hidden(page, &about))
                (values.hidden())
                div.buttons {
                    (step_button(Step::Confirm, about.button, if about.is_final { "danger" } else { "main" }))
                    @if has_form { (step_button(Step::Edit, "Back to the form", "other")) }
                    a.button.other href=(about.back.0) { "Cancel" }
                }
            }
        }
    };
    respond(page, &about, errors, status, &question)
}

/// The page of a change: its form or its question, or why it is not possible.
fn respond(
    page: &Page,
    about: &About,
    errors: &Errors,
    status: StatusCode,
    form: &Markup,
) -> Response {
    let main = html! {
        p.quiet { a href=(about.back.0) { (about.back.1) } }
        h1 { (about.title) }
        (errors.summary())
        @match &about.refusal {
            Some(refusal) => { p { (with_code(refusal)) } p { a.button href=(about.back.0) { "Back" } } }
            None => { (form) }
        }
    };
    page.respond(status, about.title, &main)
}

/// The token of a form, and the version of what it changes.
fn hidden(page: &Page, about: &About) -> Markup {
    html! {
        input type="hidden" name=(FORM_TOKEN) value=(page.token());
        @if let Some(version) = about.version { input type="hidden" name="version" value=(version); }
    }
}
