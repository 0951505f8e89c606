//! The background work of an engine: started with the service, stopped before it ends.

use std::sync::{Arc, PoisonError, Weak};

use tokio::sync::mpsc;

use crate::Engine;
use crate::maintenance::{self, PeriodicTasks};
use crate::replication;

impl Engine {
    /// Start replication and maintenance, once. They end when the engine or `tasks` are dropped.
    pub fn start_background(self: &Arc<Self>, tasks: Weak<dyn PeriodicTasks>) {
        let engine = || Arc::downgrade(self);
        let every = self.settings.maintain_every;
        let (sends_notices, notices) = mpsc::unbounded_channel();
        let mut work = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        work.spawn(replication::follow(engine(), notices, self.settings.poll_every));
        if self.settings.listen {
            work.spawn(replication::listen(Arc::clone(&self.store), sends_notices));
        }
        if let Some(due) = self.due.lock().unwrap_or_else(PoisonError::into_inner).take() {
            work.spawn(maintenance::maintain_due(engine(), Weak::clone(&tasks), due));
        }
        work.spawn(maintenance::flush_unlogged(engine(), every));
        work.spawn(maintenance::bound_memory(engine(), every));
        work.spawn(maintenance::load_due(engine(), every));
        work.spawn(maintenance::refresh_keys(engine(), Weak::clone(&tasks), every));
        work.spawn(maintenance::maintain_experiments(engine(), tasks, every));
    }

    /// Stop replication and maintenance, and write what is only in memory.
    pub async fn stop_background(self: &Arc<Self>) {
        self.background.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        // twice: a pending flush that failed before goes first, under its own nonce
        self.flush_unlogged().await;
        self.flush_unlogged().await;
    }

    /// Write the rest of what is only in memory, then close the store.
    pub async fn close(&self) {
        if let Err(error) = self.save_snapshots().await {
            tracing::warn!(%error, "no snapshot at shutdown; the next start folds more of the log");
        }
        self.store.close().await;
    }
}
