//! Errors of the use cases.

use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::FieldError;
use rankduel_store::StoreError;

/// Why a use case was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The experiment cannot be loaded, read or written.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The request is well formed, but invalid.
    #[error("{}", first_detail(.0))]
    Invalid(Vec<FieldError>),
    /// An experiment with this name was created from a different request.
    #[error("experiment `{0}` exists and was created from a different request")]
    Exists(String),
    /// Another experiment has the id that is computed from this name.
    #[error(
        "the name `{0}` cannot be used: another experiment has the id that is computed from it. \
         Choose another name"
    )]
    NameCollision(String),
    /// The experiment was changed since the caller read it.
    #[error("the experiment is at version {current}, not {expected}: read it again, then decide")]
    Stale {
        /// The version that the caller expected.
        expected: u64,
        /// The current version.
        current: u64,
    },
    /// The `duel_id` names no duel of this experiment.
    #[error("the duel does not belong to this experiment: {0}")]
    InvalidDuel(String),
    /// The duel has expired.
    #[error("the duel expired at {}", rankduel_engine::clock::rfc3339(*.0))]
    Expired(i64),
    /// The experiment is paused.
    #[error(
        "experiment `{0}` is paused and issues no duels; show your control ranking until it runs again"
    )]
    Paused(String),
    /// Only a concluded experiment can be archived.
    #[error("experiment `{0}` is not concluded; conclude it before you archive it")]
    NotConcluded(String),
    /// The experiment is archived.
    #[error("experiment `{0}` is archived: it can be read, but not changed")]
    Archived(String),
    /// It gets the pages of a segment of another experiment.
    #[error("experiment `{name}` gets the pages of a segment of `{by}`; archive `{by}` first")]
    InUse {
        /// The experiment.
        name: String,
        /// The other one.
        by: String,
    },
    /// The policy does not run in batches.
    #[error("policy `{0}` does not run in batches")]
    NotInBatches(&'static str),
    /// Another batch is open, or none.
    #[error("batch {asked} is not open; {}", open.map_or("no batch is".to_string(), |open| format!("batch {open} is")))]
    BatchNotOpen {
        /// The batch of the request.
        asked: u32,
        /// The open batch.
        open: Option<u32>,
    },
    /// The rankers of the experiment cannot be changed.
    #[error("{0}")]
    FixedRankers(String),
    /// The log cannot be folded under another policy.
    #[error("{0}")]
    CannotReplay(String),
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

    /// A defect.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        EngineError::Internal(what.into()).into()
    }

    /// One invalid field.
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
