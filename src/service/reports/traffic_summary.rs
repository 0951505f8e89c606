//! A summary of the traffic of an experiment through this process.

use dueling_bandits::claims::alone::Split;
use dueling_bandits::evidence::balance::Cell;
use serde::Serialize;
use utoipa::ToSchema;

use rankduel_engine::drafts::DraftCounts;
use rankduel_engine::metrics::{DELAY_SECONDS, FeedbackStatus};
use rankduel_engine::traffic::{EndedDuels, TrafficCounts};

/// Traffic through this process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSummary {
    /// Unix milliseconds since which it is counted.
    pub since_ms: i64,
    /// Unix milliseconds of the newest answer; `since_ms` before the first.
    pub newest_answer_ms: i64,
    /// Pairs issued.
    pub pairs: u64,
    /// Self-duels issued.
    pub self_duels: u64,
    /// Pages of those who take no part.
    pub outside: u64,
    /// Pairs that are neither answered nor expired.
    pub in_flight: u64,
    /// Pairs whose time is over and that were not answered.
    pub unanswered: u64,
    /// Feedback by status.
    pub feedback: FeedbackCounts,
    /// Delays of answers.
    pub delay: Delays,
    /// Duels whose time is over, and whether answers are missing equally often.
    pub ended: EndedDuels,
    /// Pages by who drafted first.
    pub drafts: DraftCounts,
    /// Units that see one ranker alone, in the whole log: those that got a page, and those that
    /// have answered. `None` without such units.
    pub alone: Option<[Split; 2]>,
}

/// Feedback by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedbackCounts {
    pub recorded: u64,
    pub duplicate: u64,
    /// Contradicts recorded feedback.
    pub conflict: u64,
    pub expired: u64,
    /// Clicks that were sent after the duel was settled.
    pub late: u64,
    /// Names no duel of this experiment.
    pub invalid: u64,
}

impl FeedbackCounts {
    /// Each status with its count.
    pub fn by_status(&self) -> [(FeedbackStatus, u64); 6] {
        [
            (FeedbackStatus::Recorded, self.recorded),
            (FeedbackStatus::Duplicate, self.duplicate),
            (FeedbackStatus::Conflict, self.conflict),
            (FeedbackStatus::Expired, self.expired),
            (FeedbackStatus::Late, self.late),
            (FeedbackStatus::Invalid, self.invalid),
        ]
    }

    /// All feedback.
    pub fn total(&self) -> u64 {
        self.recorded + self.duplicate + self.conflict + self.expired + self.late + self.invalid
    }
}

/// Time from issuing a duel to having its answer in the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Delays {
    /// Those of duels that this process issued.
    pub answers: u64,
    /// The median, as the upper end of its bucket; `null` before the first answer, and if it is
    /// more than a day.
    pub p50_seconds: Option<f64>,
    pub p90_seconds: Option<f64>,
    pub p99_seconds: Option<f64>,
}

impl TrafficSummary {
    /// Share of the duels whose time is over that were answered; `None` before the first.
    pub fn answered_share(&self) -> Option<f64> {
        let Cell { issued, answered } = self.ended.total;
        (issued > 0).then(|| answered as f64 / issued as f64)
    }

    /// Summary of these counts, with `in_flight` open pairs.
    pub(super) fn of(counts: TrafficCounts, in_flight: u64, alone: Option<[Split; 2]>) -> Self {
        let of = |status: FeedbackStatus| counts.feedback[status as usize];
        Self {
            since_ms: counts.since_ms,
            newest_answer_ms: counts.newest_answer_ms,
            pairs: counts.pairs,
            self_duels: counts.self_duels,
            outside: counts.outside,
            in_flight,
            unanswered: counts.ended.total.issued - counts.ended.total.answered,
            feedback: FeedbackCounts {
                recorded: of(FeedbackStatus::Recorded),
                duplicate: of(FeedbackStatus::Duplicate),
                conflict: of(FeedbackStatus::Conflict),
                expired: of(FeedbackStatus::Expired),
                late: of(FeedbackStatus::Late),
                invalid: of(FeedbackStatus::Invalid),
            },
            delay: Delays {
                answers: counts.delays.iter().sum(),
                p50_seconds: quantile(&counts.delays, 0.5),
                p90_seconds: quantile(&counts.delays, 0.9),
                p99_seconds: quantile(&counts.delays, 0.99),
            },
            ended: counts.ended,
            drafts: counts.drafts,
            alone,
        }
    }
}

/// The upper end of the bucket with the quantile.
fn quantile(buckets: &[u64], share: f64) -> Option<f64> {
    let total: u64 = buckets.iter().sum();
    let wanted = (total as f64 * share).ceil().max(1.0);
    let mut below = 0;
    let bucket = buckets.iter().position(|count| {
        below += count;
        below as f64 >= wanted
    })?;
    DELAY_SECONDS.get(bucket).copied()
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::histogram::Histogram;

    use super::*;
    use rankduel_engine::open_duels::OpenDuels;
    use rankduel_engine::traffic::Traffic;

    #[test]
    fn quantiles_are_upper_ends_of_buckets() {
        let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
        let delay = || {
            TrafficSummary::of(traffic.counts(&mut OpenDuels::new(1000, (0, 1000)), 0), 0, None)
                .delay
        };
        assert_eq!(delay().p50_seconds, None);
        for delay_ms in [50, 60, 70, 80, 90, 900, 950, 2000, 4000, 100_000_000] {
            traffic.answered(0, delay_ms);
        }
        let delay = delay();
        assert_eq!(
            (delay.answers, delay.p50_seconds, delay.p90_seconds),
            (10, Some(0.1), Some(5.0))
        );
        assert_eq!(delay.p99_seconds, None, "longer than a day");
    }
}
