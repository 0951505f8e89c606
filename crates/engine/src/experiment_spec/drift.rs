//! Whether an experiment looks for changes of preferences, and what it does about them.

use serde::{Deserialize, Serialize};

use super::field_error::{FieldError, share_error};

/// Default share of pages on which the winner of a concluded experiment meets another ranker. A
/// change of ten points takes some 1,500 answers to tell: 75,000 pages.
pub const DEFAULT_WATCH: f64 = 0.02;
/// Largest share of pages to watch: more would continue the experiment.
const WATCH_MAX: f64 = 0.5;

/// The reaction to a change of preferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDrift {
    /// Do not look for changes.
    Off,
    /// Raise an alarm.
    #[default]
    Tell,
    /// Raise an alarm, and start the verdict again, as after a change of the rankers. After the
    /// conclusion, only raise the alarm.
    Restart,
}

/// The error of a share of pages to watch.
pub(super) fn watch_error(watch: f64, on_drift: OnDrift) -> Option<FieldError> {
    let unwatched = || {
        let detail = format!(
            "`watch` is {watch:?}, but nobody looks for drift: leave it out, or set `drift` to `tell`"
        );
        (watch > 0.0 && on_drift == OnDrift::Off).then(|| FieldError::new("/watch", detail))
    };
    share_error("/watch", watch, 0.0..=WATCH_MAX).or_else(unwatched)
}
