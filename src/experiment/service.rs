//! The use cases: create an experiment, ask for a duel, report an outcome, read the standings.

use std::sync::Arc;

use crate::clock::SharedClock;
use crate::store::{SharedStore, StoreError};

/// What a service can be tuned by.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Events that may wait for a commit; beyond that feedback is refused with "try again".
    pub queue_events_max: usize,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self { queue_events_max: 100_000 }
    }
}

/// Everything the API does, without HTTP.
pub struct Service {
    store: SharedStore,
    #[expect(dead_code, reason = "read by the use cases")]
    clock: SharedClock,
}

impl Service {
    /// Start serving from `store`, whose schema must be current.
    pub async fn start(
        store: SharedStore,
        clock: SharedClock,
        _settings: ServiceSettings,
    ) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self { store, clock }))
    }

    /// Whether the database answers and has this program's schema.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    /// Write what is only in memory, then close the store. Call when no request is running any more.
    pub async fn shutdown(&self) {
        self.store.close().await;
    }
}
