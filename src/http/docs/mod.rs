//! The description for people: `/openapi.yaml`, `/docs` and `/problems/{slug}`.
//!
//! The pages are written once, when the server starts, from the same document that machines read.
//! They need no script and ask no other host for anything.

use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
use utoipa::openapi::OpenApi;

use super::problem::ProblemKind;

mod page;
mod schema;
mod text;

const STYLE: &str = include_str!("style.css");

/// The routes of the documentation of `openapi`.
pub(crate) fn routes(openapi: &OpenApi) -> anyhow::Result<Router> {
    let yaml: Arc<str> =
        openapi.to_yaml().context("the description cannot be written as YAML")?.into();
    let document =
        serde_json::to_value(openapi).context("the description cannot be written as JSON")?;
    let page: Arc<str> = page::reference(&document).into_string().into();
    let policy = content_security_policy()?;
    let problem_policy = policy.clone();
    Ok(
        Router::new()
            .route(
                "/openapi.yaml",
                get(move || async move {
                    ([(header::CONTENT_TYPE, "application/yaml")], yaml.to_string())
                }),
            )
            .route("/docs", get(move || async move { respond(&policy, page.to_string()) }))
            .route(
                "/problems/{slug}",
                get(move |Path(slug): Path<String>| async move {
                    match ProblemKind::of_slug(&slug) {
                        Some(kind) => respond(&problem_policy, problem_page(kind).into_string()),
                        None => StatusCode::NOT_FOUND.into_response(),
                    }
                }),
            ),
    )
}

/// Nothing but the page's own style: no script, no frame, no form, no other host.
fn content_security_policy() -> anyhow::Result<HeaderValue> {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    Ok(HeaderValue::from_str(&policy)?)
}

fn respond(policy: &HeaderValue, page: String) -> Response {
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy.clone()),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, page).into_response()
}

/// A whole page.
fn shell(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
}

fn problem_page(kind: ProblemKind) -> Markup {
    shell(
        &format!("{} · rankduel", kind.title()),
        &html! {
            main.problem {
                p { a href="/docs#problems" { "rankduel: all problems" } }
                h1 { (kind.title()) }
                p { code { (kind.type_uri()) } ", sent with status " strong { (kind.status().to_string()) } }
                h2 { "What it means" }
                p { (text::inline(kind.meaning())) }
                h2 { "What to do" }
                p { (text::inline(kind.remedy())) }
                @if let Some(seconds) = kind.retry_after_seconds() {
                    p { "The answer has a " code { "Retry-After" } " header, usually of " (seconds) " s." }
                }
            }
        },
    )
}
