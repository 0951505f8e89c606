//! One operation of the API: which access it needs, and which problems it can return.

use axum::http::Method;

use super::problem::ProblemKind;
use crate::access::Scope;

/// What a caller needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the operation returns nothing about an experiment.
    Open,
    /// A key with this scope.
    Scope(Scope),
}

/// One operation of the API.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The template of the path, such as `/v1/experiments/{name}`.
    pub path: String,
    /// What a caller needs.
    pub access: Access,
    /// Every kind of problem that it can return, ordered as in [`ProblemKind::ALL`].
    pub problems: Vec<ProblemKind>,
}
