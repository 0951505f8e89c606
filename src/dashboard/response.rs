//! The responses of the dashboard.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};

use super::layout::{Visitor, page};
use crate::http::conditional::{quoted, tag_of, unchanged, with_etag};
use crate::http::problem::Problem;

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
        let text = page(title, visitor, true, main).into_string();
        let tag = tag_of(text.as_bytes());
        Self { text, tag }
    }

    /// The page, or 304 for a browser that has it.
    pub fn respond(self, request: &HeaderMap) -> Response {
        unchanged(request, &self.tag)
            .unwrap_or_else(|| with_etag(Html(self.text).into_response(), &quoted(&self.tag)))
    }
}

/// A problem as a page, which is not stored.
pub(crate) fn problem_page(problem: &Problem, visitor: Visitor) -> Response {
    let kind = problem.kind();
    let main = html! {
        h1 { (kind.title()) }
        p { (problem.detail()) }
        p { (kind.remedy()) }
        p { a href="/" { "All experiments" } }
    };
    let mut response = (kind.status(), page(kind.title(), visitor, false, &main)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
