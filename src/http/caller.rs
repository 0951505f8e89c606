//! The caller of a request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::problem::{Problem, ProblemKind};
use rankduel_engine::access::{Actor, KnownKey, Scope};
use rankduel_store::ListFilter;

/// The caller of a request; an extractor.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    key: Option<Arc<KnownKey>>,
    request_id: Option<String>,
}

impl Caller {
    pub(crate) fn new(key: Option<Arc<KnownKey>>, request_id: &str) -> Self {
        Self { key, request_id: Some(request_id.into()) }
    }

    /// The caller as the audit log names it.
    pub fn actor(&self) -> Actor {
        let actor =
            self.key.as_ref().map_or_else(Actor::anyone, |key| Actor::key(key.id().as_str()));
        match &self.request_id {
            Some(id) => actor.in_request(id),
            None => actor,
        }
    }

    /// Whether the caller may do what needs `scope`. A server without keys allows everything.
    pub fn allows(&self, scope: Scope) -> bool {
        self.key.as_ref().is_none_or(|key| key.allows(scope))
    }

    /// The caller's key.
    pub(crate) fn key(&self) -> Option<&Arc<KnownKey>> {
        self.key.as_ref()
    }

    /// This list, of the experiments that the caller's key includes. It reveals nothing about
    /// others.
    pub fn may_list(&self, filter: ListFilter) -> ListFilter {
        let names = self.key.as_ref().and_then(|key| key.experiments());
        ListFilter { names: names.map(<[String]>::to_vec), ..filter }
    }

    /// Require that the caller's key includes this experiment.
    pub fn require_experiment(&self, experiment: &str) -> Result<(), Problem> {
        self.key.as_ref().map_or(Ok(()), |key| require_experiment(key, experiment))
    }

    /// Require that the caller's key is not restricted to some experiments.
    pub fn require_all_experiments(&self) -> Result<(), Problem> {
        match &self.key {
            Some(key) if key.experiments().is_some() => Err(forbidden(format!(
                "The key {} is restricted to some experiments, and this response covers all.",
                key.id().as_str()
            ))),
            _ => Ok(()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Require that this key includes this experiment.
pub(crate) fn require_experiment(key: &KnownKey, experiment: &str) -> Result<(), Problem> {
    if key.experiments().is_none_or(|names| names.iter().any(|own| own == experiment)) {
        return Ok(());
    }
    Err(forbidden(format!(
        "The key {} does not include the experiment `{experiment}`.",
        key.id().as_str()
    )))
}

pub(crate) fn forbidden(detail: String) -> Problem {
    Problem::new(ProblemKind::Forbidden, detail)
}
