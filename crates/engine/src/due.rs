//! Experiments that may conclude now, because their fold has just reached a verdict or a limit of
//! duels.
//!
//! The maintenance rounds find them too. But a busy experiment shows thousands of pages from one
//! round to the next, so a fold that gets there wakes a task of its own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use rankduel_store::ExperimentId;

/// Experiments that wait for the task.
#[derive(Debug, Default)]
pub struct DueExperiments {
    ids: Mutex<HashSet<ExperimentId>>,
    wake: Notify,
}

impl DueExperiments {
    pub(crate) fn add(&self, id: ExperimentId) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        self.wake.notify_one();
    }

    /// Wake the task, which then finds that its engine is gone.
    pub(crate) fn close(&self) {
        self.wake.notify_one();
    }

    /// Wait for experiments. Returns none after [`DueExperiments::close`].
    pub(crate) async fn next(&self) -> HashSet<ExperimentId> {
        self.wake.notified().await;
        std::mem::take(&mut *self.ids.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
