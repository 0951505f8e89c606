//! Answers as JSON.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::problem::Problem;

/// The response with this answer, of about so many bytes. `axum::Json` writes into a small buffer
/// that grows, which takes longer.
pub(super) fn json_response(answer: &impl Serialize, bytes: usize) -> Response {
    let mut text = Vec::with_capacity(bytes);
    if let Err(error) = serde_json::to_writer(&mut text, answer) {
        return Problem::internal(format!("an answer was not written: {error}")).into_response();
    }
    let mut response = Response::new(Body::from(text));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
