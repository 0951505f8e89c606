//! When the result is expected, by how fast pages come.

use crate::service::reports::duels_to_go::DuelsToGo;
use crate::service::reports::verdict_report::Verdict;
use rankduel_engine::fold::Fold;
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

/// A forecast that is further away is no date.
pub(crate) const FAR_DAYS: i64 = 90;
/// Newest days from which the rate of pages is computed.
const SPEED_DAYS: i64 = 7;
pub(crate) const DAY_MS: i64 = 86_400_000;

/// When the result is expected.
pub(crate) enum When {
    /// The answers that wait are enough.
    Waits,
    /// About this time, in Unix milliseconds, and no later than the other one in nine of ten
    /// forecasts.
    About(i64, Option<i64>),
    /// Too far away to say.
    Far,
    /// Why there is no forecast.
    Unknown(String),
}

impl When {
    pub fn of(verdict: &Verdict, pace: Pace) -> Self {
        let late = |at: i64| at - pace.now > FAR_DAYS * DAY_MS;
        match &verdict.duels_to_go {
            Some(DuelsToGo { estimate: 0, .. }) => Self::Waits,
            Some(DuelsToGo { estimate, high, .. }) => match pace.after(*estimate) {
                None => Self::Unknown("no pages come at present".into()),
                Some(at) if late(at) => Self::Far,
                Some(at) => {
                    let high = high.and_then(|high| pace.after(high));
                    Self::About(at, high.filter(|at| !late(*at)))
                }
            },
            None => Self::Unknown(verdict.duels_to_go_reason.clone().unwrap_or_default()),
        }
    }
}

/// How fast pages come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Pages, lately; 0 if it issues no duels.
    pages: u64,
    /// Unix milliseconds from which they are counted.
    since: i64,
    /// Milliseconds of that time in which it was paused.
    paused: i64,
    /// Unix milliseconds.
    pub now: i64,
}

impl Pace {
    /// The pace in the newest days.
    pub fn of(fold: &Fold, record: &ExperimentRecord, now: i64) -> Self {
        let from = now - SPEED_DAYS * DAY_MS;
        let checkpoints = fold.state().history.checkpoints();
        let before = checkpoints.iter().rfind(|point| point.recorded_at <= from);
        let (steps, since) =
            before.map_or((0, record.created_at), |point| (point.steps, point.recorded_at));
        let pages = fold.state().counts.answered_duels() + fold.state().counts.self_duels;
        let runs = record.archived_at.is_none() && record.status == Status::Running;
        Self { pages: if runs { pages.saturating_sub(steps) } else { 0 }, since, paused: 0, now }
    }

    /// The pace without the times, from and until, in which it was paused.
    pub fn without(self, pauses: &[(i64, i64)]) -> Self {
        let within = |&(from, until): &(i64, i64)| (until - from.max(self.since)).max(0);
        Self { paused: pauses.iter().map(within).sum(), ..self }
    }

    /// When so many more pages will be shown, in Unix milliseconds; `None` if none come.
    pub fn after(&self, more: u64) -> Option<i64> {
        let time = (self.now - self.since - self.paused).max(1) as f64;
        let wait = more as f64 * time / self.pages as f64;
        (wait.is_finite() && wait < 1e14).then(|| self.now + wait as i64)
    }
}
