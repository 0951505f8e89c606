//! The traffic of an experiment through this process.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::guardrails::silences;
use dueling_bandits::claims::alone::Split;
use dueling_bandits::claims::drift;
use dueling_bandits::evidence::balance::Cell;
use dueling_bandits::{BatchProgress, Duel};
use rankduel_engine::fold::Fold;
use rankduel_engine::fold::page_counts::PairPages;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::{DELAY_SECONDS, FeedbackStatus};
use rankduel_engine::traffic::TrafficCounts;
use rankduel_store::events::Status;

/// A right clock is not so far behind the one that recorded an entry.
const AHEAD_MS: i64 = 60_000;

/// The traffic of an experiment at one moment, and what else raises alarms.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSummary {
    /// Counts of this process.
    pub counts: TrafficCounts,
    /// Pairs that are neither answered nor expired.
    pub in_flight: u64,
    /// Units that see one ranker alone, in the whole log: those that got a page, and those that
    /// have answered.
    pub alone: Option<[Split; 2]>,
    /// Answers of the whole log by side of the page: left won, right won, tie, no click.
    pub shown: [u64; 4],
    pub silent: SilentPages,
    /// Whether duels are issued.
    pub running: bool,
    /// Time to live of a duel, in milliseconds.
    pub ttl_ms: i64,
    /// The moment, in Unix milliseconds.
    pub now_ms: i64,
    /// The time from which on duels count, if a clock was ahead when it was set.
    pub time_ahead_ms: Option<i64>,
    /// The newest time of an entry that waits, or of the newest one, in Unix milliseconds, if that
    /// is after the time now.
    pub recorded_ahead_ms: Option<i64>,
    /// The open batch of a policy that runs in batches, until the experiment is concluded.
    pub batch: Option<BatchSummary>,
    /// The newest change of preferences, until there is a verdict on what is true since then.
    pub drift: Option<drift::Alarm>,
    /// Whether orders decide: silence is then no loss.
    pub by_orders: bool,
    /// The pairs in which clicks prove one ranker, and orders the other.
    pub misleading: Vec<Duel>,
    /// Limits that missing values can break by themselves, in sentences.
    pub silences: Vec<String>,
}

/// The open batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSummary {
    pub number: u32,
    /// The highest number that a batch can get.
    pub number_max: u32,
    pub progress: BatchProgress,
    /// Unix milliseconds since which no comparison of the batch was answered while the experiment
    /// was running.
    pub still_since_ms: i64,
}

/// Answered pages of the whole log without a winner or a tie. Each cause has its own remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SilentPages {
    /// No click, or an outcome `none` that the caller reported.
    pub no_click: u64,
    /// Clicks, but none that earns credit.
    pub no_credit: u64,
    /// Both rankings were the same.
    pub same_rankings: u64,
}

/// Feedback by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedbackCounts {
    pub recorded: u64,
    pub duplicate: u64,
    /// Feedback that contradicts recorded feedback.
    pub conflict: u64,
    pub expired: u64,
    /// Clicks that were sent after the duel was settled.
    pub late: u64,
    /// Feedback that names no duel of this experiment.
    pub invalid: u64,
    /// Feedback that counts for nothing, such as that of a page that takes no part.
    pub ignored: u64,
}

/// Time from issuing a duel to having its answer in the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Delays {
    /// Number of answers to duels that this process issued.
    pub answers: u64,
    /// The median, as the upper end of its bucket; `null` before the first answer, and if it is
    /// more than a day.
    pub p50_seconds: Option<f64>,
    pub p90_seconds: Option<f64>,
    pub p99_seconds: Option<f64>,
}

impl TrafficSummary {
    pub fn of(loaded: &LoadedExperiment, now_ms: i64) -> Result<Self, ServiceError> {
        let in_flight = loaded.in_flight(now_ms, |in_flight| in_flight.total())?;
        let counts = loaded.traffic_counts(now_ms);
        let fold = loaded.fold()?;
        Ok(Self {
            counts,
            in_flight,
            alone: fold.state().alone.as_deref().map(|alone| {
                let answered = *alone.answered();
                [alone.issued().with_at_least(answered), answered]
            }),
            shown: fold.state().counts.shown,
            silent: SilentPages::of(&fold),
            running: loaded.with_record(|record| {
                record.status == Status::Running && record.archived_at.is_none()
            }),
            ttl_ms: i64::from(loaded.spec.duel_ttl_seconds) * 1000,
            now_ms,
            time_ahead_ms: fold.time_ahead_of(now_ms),
            recorded_ahead_ms: fold
                .run()
                .cohorts()
                .newest_start()
                .into_iter()
                .chain([fold.state().recorded_at])
                .max()
                .filter(|at| *at > now_ms + AHEAD_MS),
            batch: BatchSummary::of(&fold),
            drift: newest_change(&fold).cloned(),
            by_orders: loaded.spec.decide_by.is_some(),
            misleading: misleading(&fold),
            silences: silences(loaded, &fold),
        })
    }

    /// Share of the duels whose time to live is over that were answered; `None` before the first,
    /// and where orders decide: clicks are no answers there.
    pub fn answered_share(&self) -> Option<f64> {
        let Cell { issued, answered } = self.counts.ended.total;
        (issued > 0 && !self.by_orders).then(|| answered as f64 / issued as f64)
    }

    /// Duels that have expired without an answer; `None` where orders decide.
    pub fn unanswered(&self) -> Option<u64> {
        let Cell { issued, answered } = self.counts.ended.total;
        (!self.by_orders).then(|| issued - answered)
    }

    pub fn feedback(&self) -> FeedbackCounts {
        let of = |status: FeedbackStatus| self.counts.feedback[status as usize];
        FeedbackCounts {
            recorded: of(FeedbackStatus::Recorded),
            duplicate: of(FeedbackStatus::Duplicate),
            conflict: of(FeedbackStatus::Conflict),
            expired: of(FeedbackStatus::Expired),
            late: of(FeedbackStatus::Late),
            invalid: of(FeedbackStatus::Invalid),
            ignored: of(FeedbackStatus::Ignored),
        }
    }

    pub fn delay(&self) -> Delays {
        let delays = &self.counts.delays;
        Delays {
            answers: delays.iter().sum(),
            p50_seconds: quantile(delays, 0.5),
            p90_seconds: quantile(delays, 0.9),
            p99_seconds: quantile(delays, 0.99),
        }
    }
}

impl BatchSummary {
    fn of(fold: &Fold) -> Option<Self> {
        let batches =
            fold.run().policy().batches().filter(|_| !fold.state().lifecycle.is_concluded())?;
        Some(Self {
            number: batches.number()?,
            number_max: batches.most(),
            progress: batches.progress(),
            still_since_ms: fold.state().batches.moved_at,
        })
    }
}

impl SilentPages {
    fn of(fold: &Fold) -> Self {
        let mut settled = PairPages::default();
        fold.state().page_counts.all().for_each(|(_, pages)| settled.add(pages));
        let [.., all] = fold.state().counts.shown;
        let PairPages { nothing_creditable, not_informative, .. } = settled;
        Self {
            no_click: all.saturating_sub(nothing_creditable + not_informative),
            no_credit: nothing_creditable,
            same_rankings: not_informative,
        }
    }

    pub fn total(&self) -> u64 {
        self.no_click + self.no_credit + self.same_rankings
    }
}

/// The newest change of preferences, unless the verdict rests only on answers since then.
fn newest_change(fold: &Fold) -> Option<&drift::Alarm> {
    let alarm = fold.run().drift()?.alarms().last()?;
    let is_about_today = alarm.restarted && fold.run().verdict().verdict().is_some();
    (!is_about_today).then_some(alarm)
}

/// The pairs in which clicks prefer one ranker and orders the other, wrong in at most 10 % of
/// experiments.
fn misleading(fold: &Fold) -> Vec<Duel> {
    let Some(baskets) = &fold.state().baskets else { return Vec::new() };
    let (scores, rankers) =
        (fold.run().verdict().counted().scores(), fold.run().roster().rankers());
    baskets.left().beside.misleading(scores, rankers, 0.95)
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
