//! Conditional requests: `ETag`, `If-None-Match` and `If-Match`.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::{ApiResult, Problem};
use super::server::deliver::counted;
use super::state::AppState;
use crate::service::reports::single_flight::Computed;

/// 304, if the caller already has the representation with this tag (RFC 9110 §13.1.2, weak
/// comparison).
pub(crate) fn unchanged(headers: &HeaderMap, tag: &str) -> Option<Response> {
    let known = headers.get(header::IF_NONE_MATCH)?.to_str().ok()?;
    let current = format!("\"{tag}\"");
    let same = known
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == current);
    same.then(|| with_etag(StatusCode::NOT_MODIFIED.into_response(), tag))
}

/// A report as JSON, with this tag. It is written once for all who ask.
pub(crate) async fn tagged<T: Serialize + Send + Sync + 'static>(
    state: &AppState,
    tag: &str,
    report: Arc<Computed<T>>,
) -> ApiResult<Response> {
    let written = match report.written() {
        Some(written) => written,
        None => {
            let pool = Arc::clone(&state.service.reports);
            state.service.reports.run(move || report.write(&pool)).await??
        }
    };
    let json = HeaderValue::from_static("application/json");
    Ok(with_etag(counted(written, [(header::CONTENT_TYPE, json)]), tag))
}

fn with_etag(mut response: Response, tag: &str) -> Response {
    // Digits, dots and dashes in quotes are a valid header value.
    if let Ok(value) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

/// The version that the caller expects.
pub(crate) enum Expected {
    /// `*`: whichever is current.
    Any,
    Version(u64),
}

impl Expected {
    pub fn version(self) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Version(version) => Some(version),
        }
    }
}

/// The version in `If-Match`, if the request has that header.
pub(crate) fn expected_version(headers: &HeaderMap) -> ApiResult<Option<Expected>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(Some(Expected::Any));
    }
    let version = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .and_then(|digits| digits.parse().ok());
    match version {
        Some(version) => Ok(Some(Expected::Version(version))),
        None => {
            let detail = "`If-Match` takes one `ETag` as it was received, such as \"3\" with its quotes, or *";
            Err(Problem::invalid(detail).header_field("if-match", detail))
        }
    }
}
