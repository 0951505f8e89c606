//! The traffic of an experiment through this process, and its alarms.

use std::sync::Arc;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::alarms::{Alarm, Signs, alarms};
use crate::service::reports::silent_pages::SilentPages;
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
}

impl Service {
    /// The traffic of an experiment through this process, and the alarms that are on. Computed on
    /// the threads for reports.
    pub async fn traffic(
        self: &Arc<Self>,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
        let (service, read) = (Arc::clone(self), Arc::clone(loaded));
        let copied = tokio::task::spawn_blocking(move || service.traffic_input(&read)).await;
        let input = copied.map_err(|error| {
            ServiceError::internal(format!("the traffic was not read: {error}"))
        })??;
        let (experiment, now_ms) = (Arc::clone(loaded), self.now_ms());
        self.reports.run(move || summary(&experiment, input, now_ms)).await
    }

    /// As [`Service::traffic`], on this thread.
    pub fn traffic_now(
        &self,
        loaded: &LoadedExperiment,
    ) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
        Ok(summary(loaded, self.traffic_input(loaded)?, self.now_ms()))
    }

    fn traffic_input(&self, loaded: &LoadedExperiment) -> Result<TrafficInput, ServiceError> {
        let in_flight = self.in_flight(loaded)?;
        let counts = loaded.traffic().counts(self.now_ms());
        let fold = loaded.fold()?;
        let progress = fold.policy().batches().map(|batches| batches.progress());
        let waits = progress.is_some_and(|batch| batch.answered < batch.needed);
        let since = fold.batch_opened_at().max(counts.newest_answer_ms);
        let shown = fold.counts().shown;
        let silent = SilentPages::of(&fold);
        Ok(TrafficInput {
            counts,
            in_flight,
            shown,
            silent,
            batch_since_ms: waits.then_some(since),
        })
    }
}

fn summary(
    loaded: &LoadedExperiment,
    input: TrafficInput,
    now_ms: i64,
) -> (TrafficSummary, Vec<Alarm>) {
    let traffic = TrafficSummary::of(input.counts, input.in_flight);
    let signs = Signs {
        traffic: &traffic,
        shown: input.shown,
        silent: input.silent,
        running: loaded
            .with_record(|record| record.status == Status::Running && record.archived_at.is_none()),
        ttl_ms: i64::from(loaded.spec.duel_ttl_seconds) * 1000,
        now_ms,
        batch_since_ms: input.batch_since_ms,
        name: &|ranker| loaded.spec.rankers[usize::from(ranker)].id.clone(),
    };
    let alarms = alarms(&signs);
    (traffic, alarms)
}
