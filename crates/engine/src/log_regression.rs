//! A log that is shorter than it was: the database file was truncated, an old backup was restored,
//! or a standby took over that was behind. The lost entries were acknowledged, so this is an error
//! that an operator must see.

use crate::metrics::Metrics;

/// Report that the log of `experiment` ends at `position`, although it had reached `was_at_least`
/// before. `sign` names the evidence.
pub fn report(metrics: &Metrics, experiment: &str, position: u64, was_at_least: u64, sign: &str) {
    metrics.log_regressions.inc();
    tracing::error!(
        experiment,
        position,
        was_at_least,
        "THE DATABASE HAS LOST ACKNOWLEDGED OUTCOMES: {sign}"
    );
}
