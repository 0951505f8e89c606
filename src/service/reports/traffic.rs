//! The traffic of an experiment through this process, and its alarms.

use crate::engine::loaded::LoadedExperiment;
use crate::events::Status;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::alarms::{Alarm, Signs, alarms};

pub use crate::service::reports::traffic_summary::{Delays, FeedbackCounts, TrafficSummary};

impl Service {
    /// The traffic of an experiment through this process, and the alarms that are on.
    pub fn traffic(
        &self,
        loaded: &LoadedExperiment,
    ) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
        // first, because it also counts the duels that have expired
        let in_flight = self.in_flight(loaded)?;
        let traffic = TrafficSummary::of(loaded.traffic().counts(), in_flight);
        let fold = loaded.fold()?;
        let pairs = fold.policy().batch_pairs();
        let waits =
            fold.policy().batch().is_some() && pairs.iter().any(|pair| pair.answered < pair.needed);
        let since = fold.batch_opened_at().max(traffic.newest_answer_ms);
        let signs = Signs {
            traffic: &traffic,
            shown: fold.counts().shown,
            running: loaded.with_record(|record| {
                record.status == Status::Running && record.archived_at.is_none()
            }),
            ttl_ms: i64::from(loaded.spec.duel_ttl_seconds) * 1000,
            now_ms: self.now_ms(),
            batch_since_ms: waits.then_some(since),
            name: &|ranker| loaded.spec.rankers[usize::from(ranker)].id.clone(),
        };
        let alarms = alarms(&signs);
        Ok((traffic, alarms))
    }
}
