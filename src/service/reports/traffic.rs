//! The traffic of an experiment through this process, and its alarms.

use std::sync::Arc;

use dueling_bandits::claims::alone::Split;
use dueling_bandits::claims::drift;
use dueling_bandits::evidence::balance::Cell;
use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::alarms::{Alarm, Signs, alarms};
use crate::service::reports::guardrails::harms;
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::silent_pages::SilentPages;
use rankduel_engine::error::EngineError;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::{DELAY_SECONDS, FeedbackStatus};
use rankduel_engine::traffic::TrafficCounts;
use rankduel_store::events::Status;

/// Traffic through this process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSummary {
    /// Counts since the experiment was loaded.
    pub counts: TrafficCounts,
    /// Pairs that are neither answered nor expired.
    pub in_flight: u64,
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
    /// Feedback by status.
    pub fn feedback(&self) -> FeedbackCounts {
        let of = |status: FeedbackStatus| self.counts.feedback[status as usize];
        FeedbackCounts {
            recorded: of(FeedbackStatus::Recorded),
            duplicate: of(FeedbackStatus::Duplicate),
            conflict: of(FeedbackStatus::Conflict),
            expired: of(FeedbackStatus::Expired),
            late: of(FeedbackStatus::Late),
            invalid: of(FeedbackStatus::Invalid),
        }
    }

    /// Delays of answers.
    pub fn delay(&self) -> Delays {
        let delays = &self.counts.delays;
        Delays {
            answers: delays.iter().sum(),
            p50_seconds: quantile(delays, 0.5),
            p90_seconds: quantile(delays, 0.9),
            p99_seconds: quantile(delays, 0.99),
        }
    }

    /// Pairs whose time is over and that were not answered.
    pub fn unanswered(&self) -> u64 {
        let Cell { issued, answered } = self.counts.ended.total;
        issued - answered
    }

    /// Share of the duels whose time is over that were answered; `None` before the first.
    pub fn answered_share(&self) -> Option<f64> {
        let Cell { issued, answered } = self.counts.ended.total;
        (issued > 0).then(|| answered as f64 / issued as f64)
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

/// The traffic of an experiment through this process, and the alarms that are on. Computed on the
/// threads for reports; on this one if they are busy for long, since it takes little.
pub async fn traffic(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
    let (read, now_ms) = (Arc::clone(loaded), service.now_ms());
    let of = Arc::clone(loaded);
    let copy = move || signs(&read, now_ms);
    let reported = service.reports.compute(copy, move |signs| with_alarms(&of, signs));
    match tokio::time::timeout(service.reports.fresh_within, reported).await {
        Err(_) | Ok(Err(ServiceError::Engine(EngineError::Overloaded))) => {
            traffic_now(service, loaded)
        }
        Ok(done) => done,
    }
}

/// As [`traffic`], on this thread.
pub fn traffic_now(
    service: &Service,
    loaded: &LoadedExperiment,
) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
    Ok(with_alarms(loaded, signs(loaded, service.now_ms())?))
}

fn with_alarms(loaded: &LoadedExperiment, signs: Signs) -> (TrafficSummary, Vec<Alarm>) {
    let alarms = alarms(&signs, &|ranker| loaded.spec.rankers[usize::from(ranker)].id.clone());
    (signs.traffic, alarms)
}

fn signs(loaded: &LoadedExperiment, now_ms: i64) -> Result<Signs, ServiceError> {
    let in_flight = loaded.in_flight(now_ms, |in_flight| in_flight.total())?;
    let counts = loaded.traffic_counts(now_ms);
    let fold = loaded.fold()?;
    let progress = fold.policy().batches().map(|batches| batches.progress());
    let waits = progress.is_some_and(|batch| batch.answered < batch.needed);
    let since = fold.batch_opened_at().max(counts.newest_answer_ms);
    let alone = fold.alone().map(|alone| [*alone.issued(), *alone.answered()]);
    Ok(Signs {
        traffic: TrafficSummary { counts, in_flight, alone },
        shown: fold.counts().shown,
        silent: SilentPages::of(&fold),
        running: loaded
            .with_record(|record| record.status == Status::Running && record.archived_at.is_none()),
        ttl_ms: i64::from(loaded.spec.duel_ttl_seconds) * 1000,
        now_ms,
        batch_since_ms: waits.then_some(since),
        hurt: SegmentsView::of(loaded, &fold).and_then(|view| view.hurts()),
        drift: newest_change(&fold).cloned(),
        harms: harms(loaded, &fold)
            .into_iter()
            .filter(|harm| harm.is_active)
            .map(|harm| harm.sentence)
            .collect(),
    })
}

/// The newest change of preferences that the verdict does not speak of.
fn newest_change(fold: &Fold) -> Option<&drift::Alarm> {
    let alarm = fold.drift()?.alarms().last()?;
    let is_about_today = alarm.restarted && fold.verdict().verdict().is_some();
    (!is_about_today).then_some(alarm)
}
