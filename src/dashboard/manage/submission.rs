//! The submission of a form, and the way to its result.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Redirect, Response};

use super::super::page::{Page, Refusal};
use super::super::session::{Dashboard, FORM_TOKEN};
use super::form::Values;
use crate::http::problem::{Problem, ProblemKind};

/// To the page that shows the result of a change.
pub(crate) fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
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
            .map_err(|rejection| Refusal::of(rejection.into_response()))?;
        // reading a larger one would hold up the requests that share its thread
        if body.len() > FORM_BYTES {
            let detail = "A form has at most 64 KiB. The API takes larger experiments.";
            return Err(page.refuse(Problem::new(ProblemKind::PayloadTooLarge, detail)));
        }
        let values = Values::parse(&body);
        require_token(&page, &values)?;
        Ok(Self { page, values })
    }
}

/// Require that a form was made for this caller. Browsers also say from which site a form comes,
/// and another layer refuses those of other sites.
fn require_token(page: &Page, values: &Values) -> Result<(), Refusal> {
    if page.sessions.is_form_token(&page.headers, &page.caller, values.get(FORM_TOKEN)) {
        return Ok(());
    }
    let detail = "The form was not made for this session, so nothing was changed. Open the page again and send it from \
         there.";
    Err(page.refuse(Problem::new(ProblemKind::Forbidden, detail)))
}
