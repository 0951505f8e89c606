//! What waits in the queues of the writer, and how much may.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::engine::error::EngineError;
use crate::engine::loaded::LoadedExperiment;
use crate::store::{Appended, NewEvent};
use crate::telemetry::metrics::Metrics;

/// Capacity of the queues: one permit for each event.
#[derive(Clone)]
pub(super) struct Capacity {
    pub permits: Arc<Semaphore>,
    pub events_max: usize,
    pub metrics: Arc<Metrics>,
}

impl Capacity {
    pub fn measure(&self) {
        self.metrics.queue_events.set((self.events_max - self.permits.available_permits()) as i64);
    }
}

/// Events of one experiment that wait to be appended.
pub(super) struct Submission {
    pub loaded: Arc<LoadedExperiment>,
    pub events: Vec<NewEvent>,
    pub reply: oneshot::Sender<Result<Vec<Appended>, EngineError>>,
    pub _permits: OwnedSemaphorePermit,
}
