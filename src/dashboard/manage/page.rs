//! A request for one of these pages, and its response.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::Markup;

use super::super::layout::{self, Frame, Visitor};
use super::super::response::problem_page;
use super::super::session::Dashboard;
use super::super::session::{FORM_TOKEN, Sessions};
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
    fn require_token(&self, values: &Values) -> Result<(), Refusal> {
        if self.sessions.is_form_token(&self.headers, &self.caller, values.get(FORM_TOKEN)) {
            return Ok(());
        }
        let detail = "The form was not made for this session, so nothing was changed. Open the page again and send it from \
             there.";
        Err(self.refuse(Problem::new(ProblemKind::Forbidden, detail)))
    }

    /// Require that the caller's key is not limited to some experiments.
    pub fn require_all_experiments(&self) -> Result<(), Refusal> {
        self.caller.require_all_experiments().map_err(|problem| self.refuse(problem))
    }

    /// A problem as a page.
    pub fn refuse(&self, problem: impl Into<Problem>) -> Refusal {
        Refusal(Box::new(private(problem_page(&problem.into(), self.visitor()))))
    }

    /// There is no such page.
    pub fn missing(&self) -> Refusal {
        self.refuse(Problem::new(ProblemKind::NotFound, "There is no such page."))
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

/// The page of a problem, in place of the one that was requested.
pub(crate) struct Refusal(Box<Response>);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Largest body of a form.
const FORM_BYTES: usize = 64 * 1024;

/// A form that was made for its caller; an extractor.
pub(crate) struct Submission {
    pub page: Page,
    pub values: Values,
}

impl FromRequest<Dashboard> for Submission {
    type Rejection = Refusal;

    async fn from_request(request: Request, dashboard: &Dashboard) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let Ok(page) = Page::from_request_parts(&mut parts, dashboard).await;
        let body = Bytes::from_request(Request::from_parts(parts, body), dashboard)
            .await
            .map_err(|rejection| Refusal(Box::new(rejection.into_response())))?;
        // reading a larger one would hold up the requests that share its thread
        if body.len() > FORM_BYTES {
            let detail = "A form has at most 64 KiB. The API takes larger experiments.";
            return Err(page.refuse(Problem::new(ProblemKind::PayloadTooLarge, detail)));
        }
        let values = Values::parse(&body);
        page.require_token(&values)?;
        Ok(Self { page, values })
    }
}

fn private(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
