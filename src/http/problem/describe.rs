//! Writing the body of an error response.

use axum::http::response::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;

use super::details::Problem;
use super::document::{PROBLEM_JSON, ProblemContext};
use super::kind::ProblemKind;

/// Write the problem in the response's extensions, or the one that a bare error response of the
/// framework stands for. Other responses stay as they are.
pub(crate) fn describe(
    response: Response,
    method: &Method,
    context: ProblemContext<'_>,
) -> Response {
    let (mut parts, body) = response.into_parts();
    let problem = match parts.extensions.remove::<Problem>() {
        Some(problem) => problem,
        None => match of_bare_response(&parts, method, context.path) {
            Some(problem) => {
                parts.headers.extend(problem.headers().clone());
                problem
            }
            None => return Response::from_parts(parts, body),
        },
    };
    parts.status = problem.kind().status();
    let document = problem.document(context);
    // Serialization cannot fail: the document has only strings and numbers.
    let body = serde_json::to_vec(&document).unwrap_or_default();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_ENCODING);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    Response::from_parts(parts, body.into())
}

/// The problem for an error response without a description. HTML pages stay as they are.
fn of_bare_response(parts: &Parts, method: &Method, path: &str) -> Option<Problem> {
    let is_described = |value: &HeaderValue| {
        value
            .to_str()
            .is_ok_and(|text| text.starts_with("text/html") || text.starts_with("application/"))
    };
    if !(parts.status.is_client_error() || parts.status.is_server_error())
        || parts.headers.get(header::CONTENT_TYPE).is_some_and(is_described)
    {
        return None;
    }
    let kind = ProblemKind::of_status(parts.status)?;
    let detail = match kind {
        ProblemKind::NotFound => format!("There is nothing at {path}."),
        ProblemKind::MethodNotAllowed => {
            format!("{method} is not allowed at {path}; the Allow header lists what is.")
        }
        kind => kind.meaning().to_owned(),
    };
    Some(Problem::new(kind, detail))
}
