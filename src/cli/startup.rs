//! Steps of a start, which say what they wait for.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// A step that takes longer than this is reported.
const SILENT_FOR: Duration = Duration::from_secs(2);
/// How often it is reported again.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Run one step of a start. `what` completes the sentence "waiting for …".
pub(super) async fn step<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let started = Instant::now();
    let mut reports = interval_at(started + SILENT_FOR, REPORT_EVERY);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = reports.tick() => tracing::warn!(
                seconds = started.elapsed().as_secs(),
                "not serving yet: waiting for {what}"
            ),
        }
    }
}
