//! Errors of the use cases.

use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::FieldError;
use rankduel_store::{Appended, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The experiment cannot be loaded, read or written.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The request is well formed, but invalid.
    #[error("{}", first_detail(.0))]
    Invalid(Vec<FieldError>),
    #[error("experiment `{0}` exists and was created from a different request")]
    Exists(String),
    /// The experiment was changed since the caller read it.
    #[error("the experiment is at version {current}, not {expected}: read it again, then decide")]
    Stale { expected: u64, current: u64 },
    /// The `duel_id` names no duel of this experiment.
    #[error("the duel does not belong to this experiment: {0}")]
    InvalidDuel(String),
    #[error("the duel expired at {}", rankduel_engine::clock::rfc3339(*.0))]
    Expired(i64),
    #[error(
        "experiment `{0}` is paused and issues no duels; show your control ranking until it runs again"
    )]
    Paused(String),
    #[error("experiment `{0}` is not concluded; conclude it before you archive it")]
    NotConcluded(String),
    #[error("experiment `{0}` is archived: it can be read, but not changed")]
    Archived(String),
    #[error("policy `{0}` does not run in batches")]
    NotInBatches(&'static str),
    /// Another batch is open, or none.
    #[error("batch {asked} is not open; {}", open.map_or("no batch is".to_string(), |open| format!("batch {open} is")))]
    BatchNotOpen { asked: u32, open: Option<u32> },
    /// The rankers of the experiment cannot be changed.
    #[error("{0}")]
    FixedRankers(String),
    /// The setting cannot be changed.
    #[error("{0}")]
    FixedSetting(String),
    #[error("{0}")]
    NoOrders(String),
    /// The beginning of the log, which the change needs, was pruned.
    #[error("{0}")]
    LogPruned(String),
    /// A different answer was recorded before and stands.
    #[error("{0}")]
    Conflict(String),
}

impl ServiceError {
    /// No experiment has this name.
    pub(crate) fn not_found(name: &str) -> Self {
        EngineError::NotFound(name.into()).into()
    }

    /// This program cannot interpret the experiment.
    pub(crate) fn unreadable(name: &str, why: String) -> Self {
        EngineError::Unreadable { name: name.into(), why }.into()
    }

    /// Nothing was appended to the experiment of this name.
    pub(crate) fn not_appended(name: &str, appended: Appended) -> Self {
        match appended {
            // another process archived it, and this one does not know yet
            Appended::Archived => Self::Archived(name.into()),
            _ => Self::not_found(name),
        }
    }

    pub(crate) fn internal(what: impl Into<String>) -> Self {
        EngineError::Internal(what.into()).into()
    }

    /// Refuse a request with these errors, if there are any.
    pub(crate) fn unless_valid(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::Invalid(errors)) }
    }

    pub(crate) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(pointer, detail)])
    }
}

fn first_detail(errors: &[FieldError]) -> &str {
    errors.first().map_or("the request is invalid", |error| &error.detail)
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}
