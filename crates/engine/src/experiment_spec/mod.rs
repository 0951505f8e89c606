//! The spec of an experiment, and the rules that a spec must satisfy.

mod conclude_at;
mod exclusions;
mod field_error;
pub mod page_rules;
mod ranker;
mod spec;

pub use conclude_at::{CONFIDENCE, ConcludeAt, MARGIN};
pub use exclusions::{MAX_EXCLUDED_UNITS, MAX_EXCLUSIONS};
pub use field_error::{ERRORS_MAX, FieldError, pointer_part};
pub use field_error::{FirstErrors, excerpt};
pub use ranker::Ranker;
pub use spec::{
    DEFAULT_DUEL_TTL_SECONDS, ExperimentSpec, MAX_DUEL_TTL_SECONDS, MAX_POLICIES, MAX_SEED,
    RANKERS_MAX, RosterChanges, name_error,
};
