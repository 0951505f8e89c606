//! The background work of an engine: started with the service, stopped before it ends.

use std::sync::{Arc, PoisonError, Weak};

use crate::Engine;
use crate::maintenance::{self, PeriodicTasks};
use crate::replication::{self, PendingNotices};

impl Engine {
    /// Start replication and maintenance. They end when the engine or `tasks` are dropped.
    pub fn start_background(self: &Arc<Self>, tasks: Weak<dyn PeriodicTasks>) {
        let notices = Arc::new(PendingNotices::default());
        let engine = || Arc::downgrade(self);
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        background.push(tokio::spawn(replication::follow(
            engine(),
            Arc::clone(&notices),
            self.settings.poll_every,
        )));
        background.push(tokio::spawn(maintenance::maintain_due(
            engine(),
            Weak::clone(&tasks),
            Arc::clone(&self.registry.due),
        )));
        let every = self.settings.maintain_every;
        background.push(tokio::spawn(maintenance::flush_unlogged(engine(), every)));
        background.push(tokio::spawn(maintenance::bound_memory(engine(), every)));
        background.push(tokio::spawn(maintenance::refresh_keys(
            engine(),
            Weak::clone(&tasks),
            every,
        )));
        background.push(tokio::spawn(maintenance::maintain_experiments(engine(), tasks, every)));
        if self.settings.listen {
            background.push(tokio::spawn(replication::listen(Arc::clone(&self.store), notices)));
        }
    }

    /// Stop replication and maintenance, and write what is only in memory.
    pub async fn stop_background(self: &Arc<Self>) {
        for task in self.background.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
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
