//! Error responses: problem details (RFC 9457).
//!
//! A handler returns a [`Problem`]. Its [`IntoResponse`](axum::response::IntoResponse) puts the
//! problem into the extensions of the response. The end of the shell writes the body, because only
//! the shell knows the id, the trace and the path of the request. It also turns the bare error
//! responses of the framework, such as those for a wrong method, into problems ([`describe`]).

mod document;
mod kind;
mod service_errors;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

pub use document::{FieldError, PROBLEM_JSON, ProblemDocument, RequestPart};
pub(crate) use document::{ProblemContext, describe, take_problem};
pub use kind::ProblemKind;

use rankduel_engine::experiment_spec::ERRORS_MAX;

/// Most characters of a text about an error, and of its place in the request. Both can repeat what
/// the caller sent.
const TEXT_CHARS: usize = 1000;

/// The result of a handler.
pub type ApiResult<T> = Result<T, Problem>;

#[derive(Debug, Clone)]
struct Inner {
    kind: ProblemKind,
    detail: String,
    errors: Vec<FieldError>,
    headers: HeaderMap,
}

/// One occurrence of a problem. Boxed, so that it is small enough for an error type.
#[derive(Debug, Clone)]
pub struct Problem(Box<Inner>);

impl Problem {
    /// A problem of this kind. `detail` is a sentence for the caller that explains this occurrence.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        if let Some(seconds) = kind.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        let mut detail = cut(detail);
        if detail.ends_with('…') {
            detail.push('.');
        }
        Self(Box::new(Inner { kind, detail, errors: Vec::new(), headers }))
    }

    /// A failure of the server. The cause goes to the log only, never to the caller.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(error = %cause, "a request failed");
        Self::unexpected()
    }

    /// A failure whose cause is in the log already.
    pub(crate) fn unexpected() -> Self {
        Self::new(
            ProblemKind::Internal,
            "The server failed; the cause is in its log output, under this request_id.",
        )
    }

    /// An invalid request: `detail` is a clause without a full stop.
    pub(crate) fn invalid(detail: &str) -> Self {
        Self::new(ProblemKind::InvalidRequest, format!("{detail}."))
    }

    /// A part of the body that is invalid, such as a `change`: the error is at a JSON pointer.
    pub(crate) fn invalid_at(
        part: &str,
        pointer: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        let detail = detail.into();
        Self::invalid(&format!("Invalid {part}: {detail}")).field(pointer, detail)
    }

    /// Add an error at a JSON pointer into the body, such as `/rankers/3/id`.
    pub fn field(self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(RequestPart::Body, pointer, detail)
    }

    /// Add an error in a query parameter.
    pub fn query(self, name: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(RequestPart::Query, name, detail)
    }

    /// Add an error in a path parameter.
    pub fn path(self, name: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(RequestPart::Path, name, detail)
    }

    /// Add an error in a header.
    pub fn header_field(self, name: impl Into<String>, detail: impl Into<String>) -> Self {
        self.error(RequestPart::Header, name, detail)
    }

    /// `place` is a pointer into the body, or a name.
    fn error(
        mut self,
        part: RequestPart,
        place: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        let place = Some(cut(place));
        let (pointer, name) = if part == RequestPart::Body { (place, None) } else { (None, place) };
        if self.0.errors.len() < ERRORS_MAX {
            self.0.errors.push(FieldError { part, pointer, name, detail: cut(detail) });
        }
        self
    }

    /// Set a header of the response.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The kind of the problem.
    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    /// The explanation of this occurrence.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The errors in the request, with their locations.
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// The headers of the response.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// The body of the response.
    pub(crate) fn document(self, context: ProblemContext<'_>) -> ProblemDocument {
        ProblemDocument {
            r#type: self.0.kind.type_uri(),
            title: self.0.kind.title().to_owned(),
            status: self.0.kind.status().as_u16(),
            detail: self.0.detail,
            instance: context.path.to_owned(),
            request_id: context.request_id.to_owned(),
            trace_id: context.trace_id.map(ToOwned::to_owned),
            errors: self.0.errors,
        }
    }
}

/// The text, or its beginning if it is long.
fn cut(text: impl Into<String>) -> String {
    let mut text = text.into();
    if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.0.kind.status().into_response();
        *response.headers_mut() = self.0.headers.clone();
        response.extensions_mut().insert(self);
        response
    }
}

/// Error messages start in lower case, as parts of a line on a terminal. In a problem they are
/// sentences.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    match letters.next() {
        Some(first) => {
            format!("{}{}.", first.to_uppercase(), letters.as_str().trim_end_matches('.'))
        }
        None => String::new(),
    }
}
