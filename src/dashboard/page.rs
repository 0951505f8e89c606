//! A request for a page of the dashboard, and its responses.

use axum::extract::{FromRef, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};

use super::layout::{self, Updates, Visitor};
use crate::http::conditional::{quoted, tag_of, unchanged, with_etag};
use crate::http::problem::{Problem, ProblemKind};
use crate::http::server::sessions::Sessions;
use crate::http::{AppState, Caller};
use rankduel_engine::access::Scope;

/// The state that every page can extract.
#[derive(Clone, FromRef)]
pub(crate) struct Dashboard {
    pub state: AppState,
    pub sessions: Sessions,
}

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
        let manages = self.caller.allows(Scope::Admin);
        Visitor {
            session: self.sessions.key_of(&self.headers).is_some(),
            manages,
            manages_all: manages && self.caller.require_all_experiments().is_ok(),
        }
    }

    pub fn token(&self) -> String {
        self.sessions.form_token(&self.headers, &self.caller)
    }

    /// This page. It is not stored, because its forms have a token.
    pub fn respond(&self, status: StatusCode, title: &str, main: &Markup) -> Response {
        not_stored((status, layout::page(title, self.visitor(), Updates::Never, main)))
    }
}

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
        let text = layout::page(title, visitor, Updates::ByScript, main).into_string();
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
    not_stored((kind.status(), layout::page(kind.title(), visitor, Updates::Never, &main)))
}

/// [`problem_page`] where the pages themselves do not answer. It does not pass through the routes,
/// which add the policy to all other pages.
pub(crate) fn page_of(problem: &Problem, session: bool) -> Response {
    let visitor = Visitor { session, ..Visitor::default() };
    let policy = [(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY))];
    (policy, problem_page(problem, visitor)).into_response()
}

fn not_stored(response: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], response).into_response()
}
