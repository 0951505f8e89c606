//! Error responses: problem details (RFC 9457).
//!
//! A handler returns a [`Problem`]. Its [`IntoResponse`](axum::response::IntoResponse) puts the
//! problem into the extensions of the response. The outermost layer of the shell writes the body,
//! because only that layer knows the id, the trace and the path of the request. It also turns the
//! bare error responses of the framework, such as those for an unknown route, into problems
//! ([`describe`]).

mod describe;
mod details;
mod document;
mod kind;
mod sentence;
mod service_errors;

pub(crate) use describe::describe;
pub use details::{ApiResult, Problem};
pub(crate) use document::ProblemContext;
pub use document::{FieldError, PROBLEM_JSON, ProblemDocument};
pub use kind::ProblemKind;
pub(crate) use sentence::sentence;
