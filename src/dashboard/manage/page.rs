//! A request for one of these pages, and its response.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::Markup;

use super::super::layout::{self, Frame, Visitor};
use super::super::response::problem_page;
use super::super::session::{FORM_TOKEN, Sessions};
use super::super::state::Dashboard;
use super::form::Values;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::{AppState, Caller};

/// A request for a page, whose caller may open it; an extractor.
pub(crate) struct Page {
    pub state: AppState,
    pub sessions: Sessions,
    pub caller: Caller,
    headers: HeaderMap,
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

    /// Require that a form was made for this caller. Browsers also say from which site a form
    /// comes, and another layer refuses those of other sites.
    pub fn require_token(&self, values: &Values) -> Result<(), Box<Response>> {
        if self.sessions.is_form_token(&self.headers, &self.caller, values.get(FORM_TOKEN)) {
            return Ok(());
        }
        let detail = "The form was not made for this session, so nothing was changed. Open the page again and send it from \
             there.";
        Err(Box::new(self.problem(&Problem::new(ProblemKind::Forbidden, detail))))
    }

    /// Require that the caller's key is not limited to some experiments.
    pub fn require_all_experiments(&self) -> Result<(), Box<Response>> {
        self.caller.require_all_experiments().map_err(|problem| Box::new(self.problem(&problem)))
    }

    /// A problem as a page.
    pub fn problem(&self, problem: &Problem) -> Response {
        private(problem_page(problem, self.visitor()))
    }

    /// This page. It is not stored, because its forms have a token.
    pub fn respond(&self, status: StatusCode, title: &str, main: &Markup) -> Response {
        let frame = Frame { title, visitor: self.visitor(), updates: false };
        private((status, layout::page(&frame, main)).into_response())
    }
}

/// To the page that shows the result of a change.
pub(crate) fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}

/// There is no such page.
pub(crate) fn no_page(page: &Page) -> Response {
    page.problem(&Problem::new(ProblemKind::NotFound, "There is no such page."))
}

fn private(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
