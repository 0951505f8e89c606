//! Why a use case was refused, without a word of HTTP.

use std::sync::Arc;

use crate::engine::experiment_spec::FieldError;
use crate::store::StoreError;

/// A use case that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No experiment has this name.
    #[error("there is no experiment `{0}`")]
    NotFound(String),
    /// The request is understood and wrong.
    #[error("{}", first_detail(.0))]
    Invalid(Vec<FieldError>),
    /// The name is taken by an experiment that was asked for differently.
    #[error("experiment `{0}` exists, and was created from another request")]
    Exists(String),
    /// The experiment was changed by somebody else since it was read.
    #[error("the experiment is at version {current}, not {expected}: read it again, then decide")]
    Stale {
        /// The version that the caller had seen.
        expected: u64,
        /// The version that it has.
        current: u64,
    },
    /// It names no duel of this experiment.
    #[error("the duel is not one of this experiment: {0}")]
    InvalidDuel(String),
    /// It came after the duel's time.
    #[error("the duel expired at {}", crate::clock::rfc3339(*.0))]
    Expired(i64),
    /// The experiment is paused.
    #[error(
        "experiment `{0}` is paused and hands out no duels; show your control ranking until it runs again"
    )]
    Paused(String),
    /// Only a concluded experiment can be archived.
    #[error("experiment `{0}` is not concluded; conclude it before it is archived")]
    NotConcluded(String),
    /// The experiment is archived: its log can be read and nothing is added.
    #[error("experiment `{0}` is archived: it can be read, and nothing is added to it")]
    Archived(String),
    /// The policy does not run in batches.
    #[error("policy `{0}` does not run in batches")]
    NotInBatches(&'static str),
    /// The batch is not the open one.
    #[error("batch {asked} is not open; {}", open.map_or("no batch is".to_string(), |open| format!("batch {open} is")))]
    BatchNotOpen {
        /// The batch that was meant.
        asked: u32,
        /// The open one.
        open: Option<u32>,
    },
    /// A ranker cannot come or go.
    #[error("{0}")]
    FixedRankers(String),
    /// The log cannot be folded anew.
    #[error("{0}")]
    CannotReplay(String),
    /// This was answered before, differently; the first answer stands.
    #[error("{0}")]
    Conflict(String),
    /// More is waiting to be written than this server takes on.
    #[error("too much feedback is waiting to be written; try again in a moment")]
    Overloaded,
    /// The store cannot be read or written now.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// It is there, and this program cannot make sense of it: its spec, an entry of its log, or
    /// what was left of it.
    #[error("this server cannot serve experiment `{name}`: {why}")]
    Unreadable {
        /// The experiment.
        name: String,
        /// What of it cannot be read.
        why: String,
    },
    /// A defect: something that this program should not be able to reach.
    #[error("{0}")]
    Internal(String),
}

fn first_detail(errors: &[FieldError]) -> &str {
    errors.first().map_or("the request is invalid", |error| &error.detail)
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}
