//! The body of an error response.
#![expect(missing_docs, reason = "the names of some fields say all")]

use axum::http::response::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Problem, ProblemKind};

/// The media type of every problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// One error in a request, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    #[serde(rename = "in")]
    pub part: RequestPart,
    /// In the body: JSON pointer (RFC 6901) to the value, or to the object where one is missing;
    /// empty for the whole body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/rankers/3/id", nullable = false)]
    pub pointer: Option<String>,
    /// Elsewhere: name of the parameter or the header; empty if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    pub detail: String,
}

/// The part of a request where an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequestPart {
    Body,
    Query,
    Path,
    Header,
}

/// Problem details (RFC 9457), extended with `request_id`, `trace_id` and `errors`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// Identifies the kind of problem: a stable URI reference, relative to the server, of a page
    /// that explains it.
    #[schema(example = "/problems/experiment-not-found", format = "uri-reference")]
    pub r#type: String,
    #[schema(example = "No such experiment")]
    pub title: String,
    #[schema(example = 404)]
    pub status: u16,
    /// Explanation of this occurrence.
    #[schema(example = "There is no experiment \"checkout\".")]
    pub detail: String,
    #[schema(example = "/v1/experiments/checkout")]
    pub instance: String,
    /// As in the server's log and the `x-request-id` header.
    #[schema(example = "5f0c7a1be2d94c36-00000a1f")]
    pub request_id: String,
    /// From the request's `traceparent` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736", nullable = false)]
    pub trace_id: Option<String>,
    /// Where the request itself is at fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// The properties of a request that its problem document repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProblemContext<'a> {
    pub path: &'a str,
    pub request_id: &'a str,
    pub trace_id: Option<&'a str>,
}

/// Write the problem in the response's extensions, or the one that a bare error response of the
/// framework stands for. Other responses stay as they are.
pub(crate) fn describe(
    response: Response,
    method: &Method,
    context: ProblemContext<'_>,
) -> Response {
    let (response, problem) = take_problem(response, method, context.path);
    let Some(problem) = problem else { return response };
    let mut parts = response.into_parts().0;
    parts.status = problem.kind().status();
    // for the log line
    parts.extensions.insert(problem.kind());
    let document = problem.document(context);
    // Serialization cannot fail: the document has only strings and numbers.
    let body = serde_json::to_vec(&document).unwrap_or_default();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_ENCODING);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    Response::from_parts(parts, body.into())
}

/// Take the problem out of a response that has one, or that stands for one.
pub(crate) fn take_problem(
    response: Response,
    method: &Method,
    path: &str,
) -> (Response, Option<Problem>) {
    let (mut parts, body) = response.into_parts();
    let mut problem = parts.extensions.remove::<Problem>();
    if problem.is_none() {
        problem = of_bare_response(&parts, method, path);
        parts.headers.extend(problem.iter().flat_map(|problem| problem.headers().clone()));
    }
    (Response::from_parts(parts, body), problem)
}

/// The problem for an error response without a description. HTML pages stay as they are.
fn of_bare_response(parts: &Parts, method: &Method, path: &str) -> Option<Problem> {
    let is_described = |value: &HeaderValue| {
        value
            .to_str()
            .is_ok_and(|text| text.starts_with("text/html") || text.starts_with("application/"))
    };
    let kind = ProblemKind::of_status(parts.status)?;
    if parts.headers.get(header::CONTENT_TYPE).is_some_and(is_described) {
        return None;
    }
    let detail = match kind {
        ProblemKind::NotFound => format!("There is nothing at {path}."),
        ProblemKind::MethodNotAllowed => {
            format!("{method} is not allowed at {path}; the Allow header lists what is.")
        }
        kind => kind.meaning().to_owned(),
    };
    Some(Problem::new(kind, detail))
}
