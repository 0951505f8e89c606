//! The traffic of an experiment through this process, and its alarms.

use std::sync::Arc;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::alarms::{Alarm, Signs, alarms};
use crate::service::reports::guardrails::harms;
use crate::service::reports::segment_claims::SegmentsView;
use crate::service::reports::silent_pages::SilentPages;
use dueling_bandits::claims::alone::Split;
use dueling_bandits::claims::drift;
use rankduel_engine::error::EngineError;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::traffic::TrafficCounts;
use rankduel_store::events::Status;

pub use crate::service::reports::traffic_summary::{Delays, FeedbackCounts, TrafficSummary};

/// Input of a summary of traffic.
struct TrafficInput {
    counts: TrafficCounts,
    in_flight: u64,
    shown: [u64; 4],
    silent: SilentPages,
    /// Unix milliseconds since which the open batch waits, if it does.
    batch_since_ms: Option<i64>,
    hurt: Option<String>,
    drift: Option<drift::Alarm>,
    alone: Option<[Split; 2]>,
    harms: Vec<String>,
}

/// The traffic of an experiment through this process, and the alarms that are on. Computed on the
/// threads for reports; on this one if they are busy for long, since it takes little.
pub async fn traffic(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
    let (read, now_ms) = (Arc::clone(loaded), service.now_ms());
    let of = Arc::clone(loaded);
    let copy = move || TrafficInput::of(&read, now_ms);
    let reported = service.reports.compute(copy, move |input| summary(&of, input, now_ms));
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
    let now_ms = service.now_ms();
    Ok(summary(loaded, TrafficInput::of(loaded, now_ms)?, now_ms))
}

impl TrafficInput {
    fn of(loaded: &LoadedExperiment, now_ms: i64) -> Result<Self, ServiceError> {
        let in_flight = loaded.in_flight(now_ms, |in_flight| in_flight.total())?;
        let counts = loaded.traffic_counts(now_ms);
        let fold = loaded.fold()?;
        let progress = fold.policy().batches().map(|batches| batches.progress());
        let waits = progress.is_some_and(|batch| batch.answered < batch.needed);
        let since = fold.batch_opened_at().max(counts.newest_answer_ms);
        Ok(Self {
            counts,
            in_flight,
            shown: fold.counts().shown,
            silent: SilentPages::of(&fold),
            batch_since_ms: waits.then_some(since),
            hurt: SegmentsView::of(loaded, &fold).and_then(|view| view.hurts()),
            drift: newest_change(&fold).cloned(),
            alone: fold.alone().map(|alone| [*alone.issued(), *alone.answered()]),
            harms: harms(loaded, &fold)
                .into_iter()
                .filter(|harm| harm.is_active)
                .map(|harm| harm.sentence)
                .collect(),
        })
    }
}

/// The newest change of preferences that the verdict does not speak of.
fn newest_change(fold: &Fold) -> Option<&drift::Alarm> {
    let alarm = fold.drift()?.alarms().last()?;
    let is_about_today = alarm.restarted && fold.verdict().verdict().is_some();
    (!is_about_today).then_some(alarm)
}

fn summary(
    loaded: &LoadedExperiment,
    input: TrafficInput,
    now_ms: i64,
) -> (TrafficSummary, Vec<Alarm>) {
    let traffic = TrafficSummary::of(input.counts, input.in_flight, input.alone);
    let signs = Signs {
        traffic: &traffic,
        shown: input.shown,
        silent: input.silent,
        running: loaded
            .with_record(|record| record.status == Status::Running && record.archived_at.is_none()),
        ttl_ms: i64::from(loaded.spec.duel_ttl_seconds) * 1000,
        now_ms,
        batch_since_ms: input.batch_since_ms,
        hurt: input.hurt.as_deref(),
        drift: input.drift.as_ref(),
        alone: input.alone,
        harms: &input.harms,
        name: &|ranker| loaded.spec.rankers[usize::from(ranker)].id.clone(),
    };
    let alarms = alarms(&signs);
    (traffic, alarms)
}
