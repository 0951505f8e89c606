//! The spec of an experiment, and the rules that a spec must satisfy.

mod by_orders;
mod conclude_at;
mod decide_by;
mod drift;
mod enrolment;
mod errors;
mod exclusions;
mod field_error;
mod metrics;
mod object;
mod or_never;
pub mod page_rules;
mod patch;
mod ranker;
mod rules;
mod spec;

pub use conclude_at::{CONFIDENCE, ConcludeAt, ConcludeAtChange, MARGIN};
pub use decide_by::{DecideBy, EVENT_WEIGHTS, OrderMeasure, SETTLE_AFTER};
pub use drift::{DEFAULT_WATCH, OnDrift};
pub use enrolment::arm_of;
pub use errors::Errors;
pub use exclusions::{Exclusion, MAX_EXCLUDED_UNITS, MAX_EXCLUSIONS};
pub use field_error::{ERRORS_MAX, FieldError, FirstErrors, excerpt, percent_hint, pointer_part};
pub use metrics::{Better, DEFAULT_VALUE_WINDOW_SECONDS, METRICS_MAX, Metric, MetricOf, OnHarm};
pub use object::{Object, UniqueKeys, optional_map};
pub use or_never::{ConclusionChangeShape, ConclusionShape, OrNever};
pub use patch::{Patch, Refused};
pub use ranker::Ranker;
pub use rules::{MAX_DESCRIPTION_CHARS, MAX_OWNER_CHARS, OTHER};
pub use spec::{
    DEFAULT_DUEL_TTL_SECONDS, ExperimentSpec, MAX_CONTROLS, MAX_DUEL_TTL_SECONDS, MAX_SEED,
    MAX_WINDOWS, RANKERS_MAX, WHOLE_COVERAGE, name_error,
};

/// Whether a field has the default of its type, and is left out.
fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}
