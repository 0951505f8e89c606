//! A database that has gone back: a file was cut off, an old backup was restored, or a standby took
//! over that was behind. What is gone was acknowledged, so it is an error that an operator must
//! see.

use crate::telemetry::metrics::Metrics;

/// Say that the log of `experiment` is shorter than it was: it goes up to `position`, after it went
/// up to `was_at_least`. `sign` is what shows it.
pub(crate) fn report(
    metrics: &Metrics,
    experiment: &str,
    position: u64,
    was_at_least: u64,
    sign: &str,
) {
    metrics.log_regressions.inc();
    tracing::error!(
        experiment,
        position,
        was_at_least,
        "THE DATABASE HAS LOST ACKNOWLEDGED OUTCOMES: {sign}"
    );
}
