//! The spec of an experiment, and the rules that a spec must satisfy.

mod changes;
mod conclude_at;
mod drift;
mod enrolment;
mod errors;
mod exclusions;
mod field_error;
mod metrics;
pub mod page_rules;
mod ranker;
mod segments;
mod settings;
mod spec;

pub use changes::Changes;
pub use conclude_at::{CONFIDENCE, ConcludeAt, ConcludeAtChange, MARGIN};
pub use drift::{DEFAULT_WATCH, OnDrift};
pub use enrolment::{WHOLE_COVERAGE, arm_of};
pub use errors::Errors;
pub use exclusions::{MAX_EXCLUDED_UNITS, MAX_EXCLUSIONS};
pub use field_error::{ERRORS_MAX, FieldError, pointer_part};
pub use field_error::{FirstErrors, excerpt};
pub use metrics::{Better, DEFAULT_VALUE_WINDOW_SECONDS, METRICS_MAX, Metric, MetricOf, OnHarm};
pub use ranker::Ranker;
pub use segments::OTHER;
pub use settings::{MAX_DESCRIPTION_CHARS, MAX_OWNER_CHARS, Settings};
pub use spec::{
    DEFAULT_DUEL_TTL_SECONDS, ExperimentSpec, MAX_CONTROLS, MAX_DUEL_TTL_SECONDS, MAX_SEED,
    MAX_WINDOWS, RANKERS_MAX, RosterChanges, name_error,
};

/// Whether a field has the default of its type, and is left out.
fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}
