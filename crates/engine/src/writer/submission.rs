//! Submissions in the queues of the writer, and the limit of their events.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::EngineError;
use crate::loaded::LoadedExperiment;
use crate::metrics::Metrics;
use rankduel_store::{Appended, NewEvent};

/// Capacity of the queues: one permit for each event.
#[derive(Clone)]
pub(super) struct Capacity {
    permits: Arc<Semaphore>,
    events_max: usize,
    pub metrics: Arc<Metrics>,
}

impl Capacity {
    pub fn new(events_max: usize, metrics: Arc<Metrics>) -> Self {
        let events_max = events_max.min(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(events_max)), events_max, metrics }
    }

    /// Permits for this many events; `None` if the queues are full.
    pub fn admit(&self, events: usize) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.permits);
        let permits = permits.try_acquire_many_owned(u32::try_from(events).ok()?).ok()?;
        self.measure();
        Some(permits)
    }

    pub fn measure(&self) {
        let waiting = self.events_max - self.permits.available_permits();
        self.metrics.queue_events.set(waiting as i64);
    }
}

/// Events of one experiment that wait to be appended.
pub(super) struct Submission {
    pub loaded: Arc<LoadedExperiment>,
    pub events: Vec<NewEvent>,
    pub reply: oneshot::Sender<Result<Vec<Appended>, EngineError>>,
    pub _permits: OwnedSemaphorePermit,
}
