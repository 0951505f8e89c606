//! Responses with an `ETag`.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

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

/// `body` as JSON, with this tag.
pub(crate) fn tagged(tag: &str, body: &impl Serialize) -> Response {
    with_etag(Json(body).into_response(), tag)
}

fn with_etag(mut response: Response, tag: &str) -> Response {
    // Digits, dots and dashes in quotes are a valid header value.
    if let Ok(value) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}
