//! The submission of a form, and the way to its result.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};

use super::super::page::{Dashboard, Page};
use super::form::{FORM_TOKEN, Values};
use crate::http::problem::{Problem, ProblemKind};

const FORM_BYTES: usize = 64 * 1024;

/// A submitted form; an extractor. Browsers also say from which site a form
/// comes, and another layer refuses those of other sites.
pub(crate) struct Submission {
    pub page: Page,
    pub values: Values,
    /// Whether the form was made for the session of the request.
    pub is_of_session: bool,
}

impl FromRequest<Dashboard> for Submission {
    type Rejection = Response;

    async fn from_request(request: Request, dashboard: &Dashboard) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let Ok(page) = Page::from_request_parts(&mut parts, dashboard).await;
        let body = Bytes::from_request(Request::from_parts(parts, body), dashboard)
            .await
            .map_err(IntoResponse::into_response)?;
        // reading a larger one would hold up the requests that share its thread
        if body.len() > FORM_BYTES {
            let detail = "A form has at most 64 KiB. The API takes larger experiments.";
            return Err(Problem::new(ProblemKind::PayloadTooLarge, detail).into_response());
        }
        let values = Values::parse(&body);
        let token = values.get(FORM_TOKEN);
        let is_of_session = page.sessions.is_form_token(&page.headers, &page.caller, token);
        Ok(Self { page, values, is_of_session })
    }
}
