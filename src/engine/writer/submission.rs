//! What waits in the queues of the writer, and how much may.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::engine::error::EngineError;
use crate::engine::loaded::LoadedExperiment;
use crate::store::{Appended, NewEvent};
use crate::telemetry::metrics::Metrics;

/// Capacity of the queues: one permit for each event. Each database has its own, so that one which
/// is down delays none of the others.
#[derive(Clone)]
pub(super) struct Capacity {
    permits: Arc<[Arc<Semaphore>]>,
    events_max: usize,
    pub metrics: Arc<Metrics>,
}

impl Capacity {
    /// Capacity for `events_max` events of each database.
    pub fn new(databases: usize, events_max: usize, metrics: Arc<Metrics>) -> Self {
        let events_max = events_max.min(Semaphore::MAX_PERMITS);
        let permits = (0..databases).map(|_| Arc::new(Semaphore::new(events_max)));
        Self { permits: permits.collect(), events_max, metrics }
    }

    /// Permits for this many events of a database; `None` if its queues are full.
    pub fn admit(&self, database: usize, events: usize) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(self.permits.get(database)?);
        let permits = permits.try_acquire_many_owned(u32::try_from(events).ok()?).ok()?;
        self.measure();
        Some(permits)
    }

    pub fn measure(&self) {
        let free: usize = self.permits.iter().map(|permits| permits.available_permits()).sum();
        self.metrics.queue_events.set((self.events_max * self.permits.len() - free) as i64);
    }
}

/// Events of one experiment that wait to be appended.
pub(super) struct Submission {
    pub loaded: Arc<LoadedExperiment>,
    pub events: Vec<NewEvent>,
    pub reply: oneshot::Sender<Result<Vec<Appended>, EngineError>>,
    pub _permits: OwnedSemaphorePermit,
}
