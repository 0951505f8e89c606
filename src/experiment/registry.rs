//! The experiments that this process has in memory, and the task that keeps them up with the store.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::OnceCell;

use super::error::ServiceError;
use super::live::Live;
use crate::store::{Head, SharedStore};

/// Entries folded between two snapshots of an experiment.
const SNAPSHOT_EVERY: u64 = 10_000;

type Slot = Arc<OnceCell<Arc<Live>>>;

/// Experiments by name, loaded on first use.
pub struct Registry {
    store: SharedStore,
    /// High half of this process's nonces.
    process: u64,
    slots: RwLock<HashMap<String, Slot>>,
}

impl Registry {
    /// Nothing loaded yet.
    pub fn new(store: SharedStore, process: u64) -> Self {
        Self { store, process, slots: RwLock::new(HashMap::new()) }
    }

    /// The experiment with this name. Requests that ask for it while it is loaded wait for the one load.
    pub async fn get(&self, name: &str) -> Result<Arc<Live>, ServiceError> {
        if let Some(live) = self.in_memory(name) {
            return Ok(live);
        }
        let slot = {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            let slot = slots.entry(name.to_string()).or_default();
            if slot.get().is_some_and(|live| live.is_broken()) {
                *slot = Slot::default();
            }
            Arc::clone(slot)
        };
        let loaded = slot
            .get_or_try_init(async || {
                let record = self.store.experiment(name).await?;
                let record = record.ok_or_else(|| ServiceError::NotFound(name.into()))?;
                Live::open(&*self.store, record, self.process).await.map(Arc::new)
            })
            .await
            .cloned();
        if loaded.is_err() {
            // names that do not exist must not pile up
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            if slots.get(name).is_some_and(|kept| Arc::ptr_eq(kept, &slot) && !kept.initialized()) {
                slots.remove(name);
            }
        }
        loaded
    }

    /// The experiment with this name, if it is in memory.
    pub fn in_memory(&self, name: &str) -> Option<Arc<Live>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(name)?.get().filter(|live| !live.is_broken()).cloned()
    }

    /// Every experiment in memory, by name.
    pub fn all(&self) -> Vec<Arc<Live>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = slots.values().filter_map(|slot| slot.get().cloned()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Bring every experiment in memory up to the store: entries that other processes appended, records that they
    /// changed.
    pub async fn follow(&self) -> Result<(), ServiceError> {
        let lives = self.all();
        if lives.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = lives.iter().map(|live| live.id).collect();
        let heads: HashMap<_, _> =
            self.store.heads(&ids).await?.into_iter().map(|head| (head.experiment, head)).collect();
        // one experiment that cannot be followed must not hold up the others
        let mut first_error = None;
        for live in lives {
            let Some(head) = heads.get(&live.id) else { continue };
            if let Err(error) = self.follow_one(&live, head).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn follow_one(&self, live: &Live, head: &Head) -> Result<(), ServiceError> {
        if head.version > live.with_record(|record| record.version)
            && let Some(record) = self.store.experiment(&live.name).await?
        {
            live.set_record(record);
        }
        if !live.is_broken() && head.head > live.fold()?.position() {
            live.catch_up(&*self.store).await?;
        }
        Ok(())
    }

    /// Keep a snapshot of every experiment that has moved on enough since its last one.
    pub async fn keep_snapshots(&self, now_ms: i64) -> Result<(), ServiceError> {
        for live in self.all() {
            if live.is_broken() {
                continue;
            }
            if let Some(snapshot) = live.snapshot_if_due(SNAPSHOT_EVERY, now_ms)? {
                self.store.save_snapshot(&snapshot).await?;
                live.snapshot_kept(snapshot.position);
            }
        }
        Ok(())
    }
}
