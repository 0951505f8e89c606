//! The table of the API's operations.
//!
//! A resource registers each handler together with the scope it needs and the problems it can
//! return ([`Routes::operation`]), so no route can be without them. Authorization and the OpenAPI
//! document are made from this table.

use axum::http::Method;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::PathItem;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::openapi::complete;
use super::problem::ProblemKind;
use super::state::AppState;
use rankduel_engine::access::Scope;

/// One operation of the API.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The template of the path, such as `/v1/experiments/{name}`.
    pub path: String,
    /// The scope that the caller's key needs; `None` if the operation needs no key, because it
    /// returns nothing about an experiment.
    pub scope: Option<Scope>,
    /// Every kind of problem that it can return, ordered as in [`ProblemKind::ALL`].
    pub problems: Vec<ProblemKind>,
}

/// Handlers, their description and their rows of the table.
pub(crate) struct Routes {
    pub router: OpenApiRouter<AppState>,
    pub operations: Vec<Operation>,
}

impl Routes {
    /// No routes. (`OpenApiRouter::new` would add a title, an author and a licence.)
    pub fn new() -> Self {
        Self::described_by(OpenApi::default())
    }

    /// No routes, and a description to which those of the handlers are added.
    pub fn described_by(openapi: OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(openapi), operations: Vec::new() }
    }

    /// Add a handler. `problems` are the kinds that it returns itself; those that all operations of
    /// its form can return, such as for an unknown experiment or a malformed body, are added, and
    /// all of them to its description.
    pub fn operation(
        mut self,
        mut handler: UtoipaMethodRouter<AppState>,
        scope: Option<Scope>,
        problems: &[ProblemKind],
    ) -> Self {
        for (path, item) in &mut handler.1.paths {
            for (method, described) in operations_of(item) {
                let problems = all_problems(described, path, scope, problems);
                complete(described, path, scope, &problems);
                self.operations.push(Operation { method, path: path.clone(), scope, problems });
            }
        }
        self.router = self.router.routes(handler);
        self
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.operations.extend(other.operations);
        Self { router: self.router.merge(other.router), operations: self.operations }
    }
}

/// The problems of an operation: its own, and those of its extractors and of the shell.
fn all_problems(
    operation: &utoipa::openapi::path::Operation,
    path: &str,
    scope: Option<Scope>,
    own: &[ProblemKind],
) -> Vec<ProblemKind> {
    let mut kinds = own.to_vec();
    if path.contains("{name}") {
        kinds.extend([ProblemKind::ExperimentNotFound, ProblemKind::ExperimentUnreadable]);
    }
    if operation.request_body.is_some() {
        kinds.extend([
            ProblemKind::MalformedJson,
            ProblemKind::InvalidRequest,
            ProblemKind::PayloadTooLarge,
            ProblemKind::UnsupportedMediaType,
        ]);
    }
    if path.contains('{') || operation.parameters.as_ref().is_some_and(|all| !all.is_empty()) {
        kinds.push(ProblemKind::InvalidRequest);
    }
    if scope.is_some() {
        kinds.extend([
            ProblemKind::Unauthorized,
            ProblemKind::Forbidden,
            ProblemKind::Overloaded,
            ProblemKind::Unavailable,
        ]);
    }
    kinds.extend([ProblemKind::HeaderFieldsTooLarge, ProblemKind::Internal, ProblemKind::Timeout]);
    ProblemKind::ALL.iter().copied().filter(|kind| kinds.contains(kind)).collect()
}

/// The operations of a path, with their methods.
fn operations_of(
    item: &mut PathItem,
) -> impl Iterator<Item = (Method, &mut utoipa::openapi::path::Operation)> {
    [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::DELETE, &mut item.delete),
        (Method::PATCH, &mut item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
