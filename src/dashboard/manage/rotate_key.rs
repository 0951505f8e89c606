//! `/keys/{id}/rotate`: a new key with the rights of another one, which ends after an overlap.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::super::layout::timestamp;
use super::confirm::Confirmation;
use super::form::{Errors, Fields, Step, Values, step_button, token_field};
use super::keys::{PATH, days, facts, made};
use super::page::{Page, no_page};
use super::submission::Submission;
use crate::http::problem::Problem;
use rankduel_engine::access::{
    KeyRotation, KeyState, OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX,
};
use rankduel_store::ApiKeyRecord;

const TITLE: &str = "Replace a key";
const HOUR_SECONDS: u32 = 3600;
const POINTERS: [(&str, &str); 2] =
    [("/overlap_seconds", "overlap_hours"), ("/expires_in_days", "expires_in_days")];

/// The form.
pub(crate) async fn show(page: Page, Path(id): Path<String>) -> Response {
    if let Err(refusal) = page.require_all_experiments() {
        return *refusal;
    }
    let hours = OVERLAP_SECONDS_DEFAULT / HOUR_SECONDS;
    let values = Values::default().with("overlap_hours", hours.to_string());
    match key(&page, &id).await {
        Ok(key) => edit(&page, &key, &values, &Errors::default(), StatusCode::OK),
        Err(refusal) => *refusal,
    }
}

/// Check a replacement, or make it.
pub(crate) async fn submit(Path(id): Path<String>, form: Submission) -> Response {
    let page = form.page();
    if let Err(refusal) = page.require_all_experiments() {
        return *refusal;
    }
    let key = match key(page, &id).await {
        Ok(key) => key,
        Err(refusal) => return *refusal,
    };
    if form.step() == Step::Edit {
        return edit_again(&form, key, Errors::default(), StatusCode::OK).await;
    }
    let (rotation, mut errors) = match form.read(|_, values| rotation(values)).await {
        Ok(read) => read,
        Err(problem) => return page.problem(&problem),
    };
    if !errors.is_empty() {
        return edit_again(&form, key, errors, StatusCode::UNPROCESSABLE_ENTITY).await;
    }
    if form.step() == Step::Review {
        return form.show(move |page, values| ask(page, &key, values, &rotation)).await;
    }
    match page.state.service.rotate_api_key(&id, &rotation, &page.caller.actor()).await {
        Ok((new, record, old)) => made(page, &new, &record, &ends(&old)),
        Err(error) => {
            let problem = Problem::from(error);
            errors.add_problem(&problem, &POINTERS);
            edit_again(&form, key, errors, problem.kind().status()).await
        }
    }
}

async fn edit_again(
    form: &Submission,
    key: ApiKeyRecord,
    errors: Errors,
    status: StatusCode,
) -> Response {
    form.show(move |page, values| edit(page, &key, values, &errors, status)).await
}

/// The replacement that a form describes, and what is wrong with it.
fn rotation(values: &Values) -> (KeyRotation, Errors) {
    let mut errors = Errors::default();
    let rotation = KeyRotation {
        overlap_seconds: overlap_seconds(values, &mut errors),
        expires_in_days: days(values, &mut errors),
    };
    for (pointer, detail) in rotation.errors() {
        let field = POINTERS.iter().find(|(own, _)| *own == pointer);
        errors.add(field.map_or("overlap_hours", |(_, field)| field), detail);
    }
    (rotation, errors)
}

/// The key to replace, or the page that says why there is none.
async fn key(page: &Page, id: &str) -> Result<ApiKeyRecord, Box<Response>> {
    match page.state.service.api_key(id).await {
        Ok(Some(key)) if KeyState::of(&key, page.state.service.now_ms()) == KeyState::Good => {
            Ok(key)
        }
        Ok(_) => Err(Box::new(no_page(page))),
        Err(error) => Err(Box::new(page.problem(&error.into()))),
    }
}

fn overlap_seconds(values: &Values, errors: &mut Errors) -> u32 {
    let seconds = values.get("overlap_hours").parse::<u32>().ok();
    seconds.and_then(|hours| hours.checked_mul(HOUR_SECONDS)).unwrap_or_else(|| {
        let most = OVERLAP_SECONDS_MAX / HOUR_SECONDS;
        errors.add("overlap_hours", format!("write a whole number of hours, 0 to {most}"));
        0
    })
}

fn edit(
    page: &Page,
    key: &ApiKeyRecord,
    values: &Values,
    errors: &Errors,
    status: StatusCode,
) -> Response {
    let fields = Fields { values, errors };
    let main = html! {
        p.quiet { a href=(PATH) { "Keys" } }
        h1 { (TITLE) }
        (errors.summary())
        p { "The new key has the name, the scopes and the experiments of key " code { (key.id) } "." }
        (facts(key))
        section {
            form.fields method="post" action=(path(key)) {
                (token_field(&page.token()))
                (fields.number("overlap_hours", "Hours until the old key ends",
                    "Both keys are valid in this time, for callers to switch; with 0 the old key ends at once."))
                (fields.number("expires_in_days", "Days until the new key expires",
                    "Empty means that it never expires."))
                div.buttons {
                    (step_button(Step::Review, "Continue", "main"))
                    a.button.other href=(PATH) { "Cancel" }
                }
            }
        }
    };
    page.respond(status, TITLE, &main)
}

fn ask(page: &Page, key: &ApiKeyRecord, values: &Values, rotation: &KeyRotation) -> Response {
    let is_own = page.caller.key().is_some_and(|own| own.id().as_str() == key.id);
    let ends_at = rotation.old_ends_at(key, page.state.service.now_ms());
    let confirmation = Confirmation {
        title: TITLE,
        sentence: html! {
            "A new key for " b { (key.name) } " will be valid at once, with the scopes " b { (key.scopes) }
            @match rotation.expires_in_days { Some(days) => { ", for " (days) " days." } None => ", without expiry." }
            " Key " code { (key.id) } " will end at " (timestamp(ends_at)) ", with every session that was opened with it."
            @if is_own { " It is the key of this session." }
            " The next page shows the new key once."
        },
        details: facts(key),
        path: &path(key),
        token: &page.token(),
        values,
        errors: &Errors::default(),
        button: "Replace the key",
        is_final: true,
        has_form: true,
        back: PATH,
    };
    page.respond(StatusCode::OK, TITLE, &confirmation.page())
}

fn path(key: &ApiKeyRecord) -> String {
    format!("{PATH}/{}/rotate", key.id)
}

/// When the old key ends.
fn ends(old: &ApiKeyRecord) -> Markup {
    html! {
        @if let Some(at) = old.expires_at {
            p { "The old key, " code { (old.id) } ", ends at " (timestamp(at)) "." }
        }
    }
}
