//! The responses of the dashboard.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use sha2::{Digest as _, Sha256};

use super::layout::{Frame, page};
use crate::http::problem::Problem;

/// Only this site's own style and script.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page about experiments, with an `ETag`.
pub(crate) fn show(headers: &HeaderMap, title: &str, session: bool, main: &Markup) -> Response {
    let frame = Frame { title, session, updates: true };
    tagged(headers, "text/html; charset=utf-8", page(&frame, main).into_string())
}

/// A text with an `ETag` derived from it; 304 for a browser that has it.
pub(crate) fn tagged(headers: &HeaderMap, content_type: &'static str, text: String) -> Response {
    let digest = Sha256::digest(&text);
    let tag: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    // Compression on the way makes a tag weak.
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let known = known.is_some_and(|known| {
        known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let body = if known { String::new() } else { text };
    let headers = [(header::CONTENT_TYPE, content_type.to_owned()), (header::ETAG, tag)];
    (status, headers, body).into_response()
}

/// A problem as a page.
pub(crate) fn problem_page(problem: &Problem, session: bool) -> Response {
    let kind = problem.kind();
    let main = html! {
        h1 { (kind.title()) }
        p { (problem.detail()) }
        p { (kind.remedy()) }
        p { a href="/" { "All experiments" } }
    };
    let frame = Frame { title: kind.title(), session, updates: false };
    let mut response = (kind.status(), page(&frame, &main)).into_response();
    if let Some(seconds) = kind.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
