//! A request for a page of the dashboard, and its response.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
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

    /// Require that the caller's key is not limited to some experiments.
    pub fn require_all_experiments(&self) -> Result<(), Refusal> {
        self.caller.require_all_experiments().map_err(|problem| self.refuse(problem))
    }

    /// A problem as a page.
    pub fn refuse(&self, problem: impl Into<Problem>) -> Refusal {
        Refusal::of(private(problem_page(&problem.into(), self.visitor())))
    }

    /// There is no such page.
    pub fn missing(&self) -> Refusal {
        self.refuse(Problem::new(ProblemKind::NotFound, "There is no such page."))
    }

    /// This page. It is not stored, because its forms have a token.
    pub fn respond(&self, status: StatusCode, title: &str, main: &Markup) -> Response {
        private((status, layout::page(title, self.visitor(), false, main)).into_response())
    }
}

/// The page of a problem, in place of the one that was requested.
pub(crate) struct Refusal(Box<Response>);

impl Refusal {
    pub fn of(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

fn private(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
