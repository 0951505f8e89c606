//! Errors of the engine.

use std::sync::Arc;

use rand::rngs::SysError;

use crate::tokens::signing::SigningKeyError;
use rankduel_store::StoreError;

/// Why an experiment cannot be loaded, read or written.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No experiment has this name.
    #[error("there is no experiment `{0}`")]
    NotFound(String),
    /// The queue of the writer is full.
    #[error("too much feedback is waiting to be written; try again in a moment")]
    Overloaded,
    /// The store cannot be read or written now.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The experiment exists, but this program cannot interpret its spec, its log or its snapshot.
    #[error("this server cannot serve experiment `{name}`: {why}")]
    Unreadable {
        /// The experiment.
        name: String,
        /// The reason.
        why: String,
    },
    /// A defect: a state that the program should never reach.
    #[error("{0}")]
    Internal(String),
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<SysError> for EngineError {
    fn from(error: SysError) -> Self {
        Self::Internal(format!("the operating system provides no randomness: {error}"))
    }
}

impl From<SigningKeyError> for EngineError {
    fn from(error: SigningKeyError) -> Self {
        match error {
            SigningKeyError::Store(error) => error.into(),
            SigningKeyError::NoRandomness(error) => error.into(),
            SigningKeyError::NoKey => Self::Internal(error.to_string()),
        }
    }
}
