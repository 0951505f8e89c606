//! A request for a page of the dashboard, and its response.

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::Markup;

use super::layout::{self, Visitor};
use super::response::problem_page;
use super::session::{Dashboard, Sessions};
use crate::http::problem::{Problem, ProblemKind};
use crate::http::{AppState, Caller};

/// A request for a page, whose caller may open it; an extractor.
pub(crate) struct Page {
    pub state: AppState,
    pub sessions: Sessions,
    pub caller: Caller,
    pub headers: HeaderMap,
}

impl FromRequestParts<Dashboard> for Page {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &Dashboard,
    ) -> Result<Self, Self::Rejection> {
        let Dashboard { state, sessions } = dashboard.clone();
        let caller = Caller::from_request_parts(parts, dashboard).await?;
        Ok(Self { state, sessions, caller, headers: parts.headers.clone() })
    }
}

impl Page {
    pub fn visitor(&self) -> Visitor {
        self.sessions.visitor(&self.headers, &self.caller)
    }

    /// The token for the forms of this response.
    pub fn token(&self) -> String {
        self.sessions.form_token(&self.headers, &self.caller)
    }

    /// This page. It is not stored, because its forms have a token.
    pub fn respond(&self, status: StatusCode, title: &str, main: &Markup) -> Response {
        let mut response =
            (status, layout::page(title, self.visitor(), false, main)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// There is no such page.
pub(crate) fn missing() -> Problem {
    Problem::new(ProblemKind::NotFound, "There is no such page.")
}

/// A layer: problems of the handlers become pages.
pub(crate) async fn problems_as_pages(page: Page, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Problem>() {
        Some(problem) => {
            let mut shown = problem_page(&problem, page.visitor());
            shown.headers_mut().extend(response.headers().clone());
            shown
        }
        None => response,
    }
}
