//! Conversion of errors of the use cases into problems.

use super::{Problem, ProblemKind, sentence};
use crate::service::error::ServiceError;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::FieldError;
use rankduel_store::StoreError;

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = sentence(&error.to_string());
        let kind = match error {
            ServiceError::Engine(error) => return error.into(),
            ServiceError::Invalid(errors) => {
                let problem = Self::new(ProblemKind::InvalidRequest, detail);
                let add =
                    |problem: Self, error: FieldError| problem.field(error.pointer, error.detail);
                return errors.into_iter().fold(problem, add);
            }
            ServiceError::InvalidDuel(why) => {
                return Self::new(ProblemKind::InvalidDuel, detail).field("/duel_id", why);
            }
            ServiceError::Expired(_) => ProblemKind::DuelExpired,
            ServiceError::Exists(_) => ProblemKind::ExperimentExists,
            ServiceError::Stale { .. } => ProblemKind::PreconditionFailed,
            ServiceError::Paused(_) => ProblemKind::ExperimentPaused,
            ServiceError::NotConcluded(_) => ProblemKind::NotConcluded,
            ServiceError::Archived(_) => ProblemKind::ExperimentArchived,
            ServiceError::NotInBatches(_) => ProblemKind::NotABatchPolicy,
            ServiceError::BatchNotOpen { .. } => ProblemKind::BatchNotOpen,
            ServiceError::FixedRankers(_) => ProblemKind::RankersFixed,
            ServiceError::FixedSetting(_) => ProblemKind::SettingFixed,
            ServiceError::NoOrders(_) => ProblemKind::NoOrders,
            ServiceError::LogPruned(_) => ProblemKind::LogPruned,
            ServiceError::Conflict(_) => ProblemKind::FeedbackConflict,
        };
        Self::new(kind, detail)
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
            StoreError::Unavailable(_)
            | StoreError::Slow(_)
            | StoreError::Foreign(_)
            | StoreError::Pooled(_) => {
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
                    "A file of the server's database was moved, deleted or truncated, or has a second name; the server's log says what \
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
