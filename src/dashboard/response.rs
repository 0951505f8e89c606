//! The responses of the dashboard.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use sha2::{Digest as _, Sha256};

use super::layout::{Frame, Visitor, page};
use crate::http::problem::Problem;
use crate::http::server::deliver::SharedText;

/// Only this site's own style and script.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page about experiments, and a tag derived from its text.
pub(crate) struct TaggedPage {
    text: String,
    tag: String,
}

impl TaggedPage {
    /// Render the page, which a script updates. Run this on a thread for reports.
    pub fn new(title: &str, visitor: Visitor, main: &Markup) -> Self {
        Self::of(&Frame { title, visitor, updates: true }, main)
    }

    /// Render a page that takes too long to update it all the time.
    pub fn without_updates(title: &str, visitor: Visitor, main: &Markup) -> Self {
        Self::of(&Frame { title, visitor, updates: false }, main)
    }

    fn of(frame: &Frame<'_>, main: &Markup) -> Self {
        let text = page(frame, main).into_string();
        let tag = tag_of(text.as_bytes());
        Self { text, tag }
    }

    /// The page, or 304 for a browser that has it.
    pub fn respond(self, request: &HeaderMap) -> Response {
        let html = "text/html; charset=utf-8";
        if knows(request, &self.tag) {
            return with_tag(StatusCode::NOT_MODIFIED.into_response(), html, &self.tag);
        }
        with_tag(self.text.into_response(), html, &self.tag)
    }
}

/// A file of the program, with a tag derived from it.
#[derive(Debug, Clone)]
pub(crate) struct TaggedFile {
    content_type: &'static str,
    text: SharedText,
    tag: String,
}

impl TaggedFile {
    pub fn new(content_type: &'static str, text: &'static str) -> Self {
        Self { content_type, text: SharedText::new(text), tag: tag_of(text.as_bytes()) }
    }

    /// The file, or 304 for a browser that has it.
    pub fn respond(&self, request: &HeaderMap) -> Response {
        let response = match knows(request, &self.tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.text.respond(request, []),
        };
        with_tag(response, self.content_type, &self.tag)
    }
}

fn tag_of(text: &[u8]) -> String {
    let digits: String =
        Sha256::digest(text)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

fn knows(request: &HeaderMap, tag: &str) -> bool {
    // Compression on the way makes a tag weak.
    let known = request.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    known
        .is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag))
}

fn with_tag(mut response: Response, content_type: &'static str, tag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Digits in quotes are a valid header value.
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// A problem as a page.
pub(crate) fn problem_page(problem: &Problem, visitor: Visitor) -> Response {
    let kind = problem.kind();
    let main = html! {
        h1 { (kind.title()) }
        p { (problem.detail()) }
        p { (kind.remedy()) }
        p { a href="/" { "All experiments" } }
    };
    let frame = Frame { title: kind.title(), visitor, updates: false };
    let mut response = (kind.status(), page(&frame, &main)).into_response();
    if let Some(seconds) = kind.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
