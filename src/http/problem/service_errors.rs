//! Conversion of errors of the use cases into problems.

use super::{Problem, ProblemKind, sentence};
use crate::service::error::ServiceError;
use rankduel_engine::error::EngineError;
use rankduel_store::StoreError;

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            ServiceError::Engine(error) => error.into(),
            ServiceError::Invalid(errors) => errors
                .into_iter()
                .fold(Self::new(ProblemKind::InvalidRequest, detail), |problem, error| {
                    problem.field(error.pointer, error.detail)
                }),
            ServiceError::InvalidDuel(why) => {
                Self::new(ProblemKind::InvalidDuel, detail).field("/duel_id", why)
            }
            ServiceError::Expired(_) => Self::new(ProblemKind::DuelExpired, detail),
            ServiceError::Exists(_) | ServiceError::NameCollision(_) => {
                Self::new(ProblemKind::ExperimentExists, detail)
            }
            ServiceError::Stale { .. } => Self::new(ProblemKind::PreconditionFailed, detail),
            ServiceError::Paused(_) => Self::new(ProblemKind::ExperimentPaused, detail),
            ServiceError::NotConcluded(_) => Self::new(ProblemKind::NotConcluded, detail),
            ServiceError::Archived(_) => Self::new(ProblemKind::ExperimentArchived, detail),
            ServiceError::InUse { .. } => Self::new(ProblemKind::ExperimentInUse, detail),
            ServiceError::NotInBatches(_) => Self::new(ProblemKind::NotABatchPolicy, detail),
            ServiceError::BatchNotOpen { .. } => Self::new(ProblemKind::BatchNotOpen, detail),
            ServiceError::FixedRankers(_) => Self::new(ProblemKind::RankersFixed, detail),
            ServiceError::CannotReplay(_) => Self::new(ProblemKind::CannotReplay, detail),
            ServiceError::Conflict(_) => Self::new(ProblemKind::FeedbackConflict, detail),
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            EngineError::NotFound(_) => Self::new(ProblemKind::ExperimentNotFound, detail),
            EngineError::Overloaded => Self::new(ProblemKind::Overloaded, detail),
            // logged once, by the engine
            EngineError::Unreadable { .. } => Self::new(ProblemKind::ExperimentUnreadable, detail),
            EngineError::Store(error) => Self::from(&*error),
            EngineError::Internal(_) => Self::internal(error),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Slow(_) | StoreError::Pooled(_) => {
                tracing::warn!(%error, "the database did not answer");
                Self::new(
                    ProblemKind::Unavailable,
                    "The server's database does not answer. Nothing is lost: send the same request again.",
                )
            }
            StoreError::Files(_) => {
                tracing::error!(%error, "the database is not in its place");
                Self::new(
                    ProblemKind::Unavailable,
                    "The file of the server's database was moved or deleted; the server's log says what \
                     to do. This request was not acknowledged: send it again later.",
                )
            }
            StoreError::Schema(_)
            | StoreError::Distribution(_)
            | StoreError::Corrupt(_)
            | StoreError::AnotherDatabase(_)
            | StoreError::Refused(_) => Self::internal(error),
        }
    }
}
