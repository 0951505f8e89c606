//! The experiments that this process has in memory: loaded on first use, kept up with the store,
//! and dropped when they are idle or take too much room.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OnceCell};
use tracing::Instrument as _;

use crate::engine::error::ServiceError;
use crate::engine::loaded::LoadedExperiment;
use crate::store::{ExperimentId, Head, SharedStore, in_time};
use crate::telemetry::metrics::Metrics;

/// An experiment that could not be read is not tried again before this: each request would fold its
/// log anew.
const REFUSED_FOR: Duration = Duration::from_secs(10);

type Slot = Arc<OnceCell<Arc<LoadedExperiment>>>;

/// Why an experiment is not served.
struct Refusal {
    why: String,
    at: Instant,
}

/// Experiments by name, loaded on first use.
pub struct Registry {
    store: SharedStore,
    /// High half of this process's nonces.
    process: u64,
    metrics: Arc<Metrics>,
    slots: RwLock<HashMap<String, Slot>>,
    by_id: RwLock<HashMap<ExperimentId, Arc<LoadedExperiment>>>,
    refused: Mutex<HashMap<String, Refusal>>,
    /// Dropped, but perhaps still held by a request, which may count a self-duel.
    leaving: Mutex<Vec<Arc<LoadedExperiment>>>,
    /// Unix milliseconds, as of the last round of upkeep: precise enough to tell who is idle.
    now_ms: AtomicI64,
    memory_bytes: u64,
    /// More is in memory than should be.
    pub(crate) overfull: Notify,
}

impl Registry {
    /// Nothing loaded yet; experiments may take `memory_bytes` together.
    pub fn new(
        store: SharedStore,
        process: u64,
        metrics: Arc<Metrics>,
        now_ms: i64,
        memory_bytes: u64,
    ) -> Self {
        Self {
            store,
            process,
            metrics,
            slots: RwLock::default(),
            by_id: RwLock::default(),
            refused: Mutex::default(),
            leaving: Mutex::default(),
            now_ms: AtomicI64::new(now_ms),
            memory_bytes,
            overfull: Notify::new(),
        }
    }

    /// The experiment with this name. Requests that ask for it while it is loaded wait for the one
    /// load, which goes on when they are given up: a log that takes longer to fold than a request
    /// may take would never be read.
    pub async fn get(self: &Arc<Self>, name: &str) -> Result<Arc<LoadedExperiment>, ServiceError> {
        if let Some(loaded) = self.in_memory(name) {
            return Ok(loaded);
        }
        if let Some(why) = self.refusal(name) {
            return Err(ServiceError::Unreadable { name: name.into(), why });
        }
        let (registry, name) = (Arc::clone(self), name.to_owned());
        let load = async move { registry.load(&name).await };
        tokio::spawn(load.in_current_span()).await.map_err(|error| {
            ServiceError::Internal(format!("an experiment could not be loaded: {error}"))
        })?
    }

    async fn load(&self, name: &str) -> Result<Arc<LoadedExperiment>, ServiceError> {
        let slot = {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            let slot = slots.entry(name.to_string()).or_default();
            if slot.get().is_some_and(|loaded| loaded.is_broken()) {
                self.leaving
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(slot.get().cloned());
                *slot = Slot::default();
            }
            Arc::clone(slot)
        };
        let loaded = slot
            .get_or_try_init(async || {
                let record = in_time(self.store.experiment(name)).await?;
                let record = record.ok_or_else(|| ServiceError::NotFound(name.into()))?;
                let now_ms = self.now_ms.load(Ordering::Relaxed);
                let loaded = LoadedExperiment::open(
                    &*self.store,
                    record,
                    self.process,
                    &self.metrics,
                    now_ms,
                )
                .await?;
                let loaded = Arc::new(loaded);
                loaded.touch(now_ms);
                self.by_id
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(loaded.id, Arc::clone(&loaded));
                Ok(loaded)
            })
            .await
            .cloned();
        match &loaded {
            Ok(_) => {
                self.refusals().remove(name);
                if self.bytes() > self.memory_bytes {
                    self.overfull.notify_one();
                }
            }
            Err(error) => {
                // names that do not exist must not pile up
                let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
                if slots
                    .get(name)
                    .is_some_and(|kept| Arc::ptr_eq(kept, &slot) && !kept.initialized())
                {
                    slots.remove(name);
                }
                drop(slots);
                if let ServiceError::Unreadable { why, .. } = error {
                    self.refuse(name, why);
                }
            }
        }
        loaded
    }

    /// The experiment with this name, if it is in memory.
    pub fn in_memory(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let loaded = slots.get(name)?.get().filter(|loaded| !loaded.is_broken())?;
        loaded.touch(self.now_ms.load(Ordering::Relaxed));
        Some(Arc::clone(loaded))
    }

    /// The same for who only looks on: that does not keep it in memory.
    pub fn peek(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(name)?.get().filter(|loaded| !loaded.is_broken()).cloned()
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<String, Refusal>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self, name: &str) -> Option<String> {
        self.refusals()
            .get(name)
            .filter(|refusal| refusal.at.elapsed() < REFUSED_FOR)
            .map(|refusal| refusal.why.clone())
    }

    /// Remember why an experiment cannot be served, and say so once for each reason.
    fn refuse(&self, name: &str, why: &str) {
        let refusal = Refusal { why: why.into(), at: Instant::now() };
        let before = self.refusals().insert(name.into(), refusal);
        if before.is_none_or(|before| before.why != why) {
            tracing::error!(experiment = name, reason = why, "an experiment cannot be served here");
        }
    }

    /// How many experiments were asked for and cannot be read by this program.
    pub fn refused(&self) -> usize {
        self.refusals().len()
    }

    /// Every experiment in memory, by name.
    pub fn all(&self) -> Vec<Arc<LoadedExperiment>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = by_id.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn bytes(&self) -> u64 {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        by_id.values().map(|loaded| loaded.bytes()).sum()
    }

    /// Bring every experiment in memory up to the store: entries that other processes appended,
    /// records that they changed.
    pub async fn follow(self: &Arc<Self>) -> Result<(), ServiceError> {
        // positions before heads: what is folded by then is in the log by then
        let lives: Vec<_> =
            self.renewed().into_iter().map(|loaded| (loaded.position(), loaded)).collect();
        if lives.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = lives.iter().map(|(_, loaded)| loaded.id).collect();
        let heads: HashMap<_, _> =
            self.store.heads(&ids).await?.into_iter().map(|head| (head.experiment, head)).collect();
        let behind = |(position, loaded): &(u64, Arc<LoadedExperiment>)| {
            heads.get(&loaded.id).map_or(0, |head| head.head.saturating_sub(*position))
        };
        self.metrics.replica_lag_entries.set(lives.iter().map(behind).max().unwrap_or(0) as i64);
        // one experiment that cannot be followed must not hold up the others
        let mut first_error = None;
        for (position, loaded) in lives {
            let head = heads.get(&loaded.id);
            let in_log = head.map_or(0, |head| head.head);
            if in_log < position {
                loaded.report_log_regression(&self.metrics, in_log, position);
                // not folded anew until somebody asks for it; its self-duels are written
                self.remove(&loaded);
                continue;
            }
            let Some(head) = head else { continue };
            if let Err(error) = self.follow_one(&loaded, head).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Every experiment in memory, by name. Those whose rankers have come or gone are on their way
    /// in again, and left out.
    fn renewed(self: &Arc<Self>) -> Vec<Arc<LoadedExperiment>> {
        let (stale_roster, lives): (Vec<_>, Vec<_>) =
            self.all().into_iter().partition(|loaded| loaded.has_stale_roster());
        for loaded in stale_roster {
            self.remove(&loaded);
            let registry = Arc::clone(self);
            // not waited for, so that it holds up nobody; if it fails, the next request for it is
            // told why
            tokio::spawn(async move { registry.get(&loaded.name).await.map(drop) });
        }
        lives
    }

    /// Fold what other processes have told of: these experiments, up to these positions at least.
    pub async fn follow_noticed(
        &self,
        noticed: HashMap<ExperimentId, u64>,
    ) -> Result<(), ServiceError> {
        let mut first_error = None;
        for (id, head) in noticed {
            let loaded =
                self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
            let Some(loaded) = loaded.filter(|loaded| !loaded.is_broken()) else { continue };
            if head > loaded.position()
                && let Err(error) = self.catch_up(&loaded).await
            {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn follow_one(
        &self,
        loaded: &Arc<LoadedExperiment>,
        head: &Head,
    ) -> Result<(), ServiceError> {
        if !loaded.is_broken() && head.head > loaded.position() {
            self.catch_up(loaded).await?;
        }
        // a change is in the log and was taken from there; this is for one that was made otherwise
        if head.version > loaded.with_record(|record| record.version)
            && let Some(record) = self.store.experiment(&loaded.name).await?
        {
            loaded.set_record(record);
        }
        Ok(())
    }

    async fn catch_up(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), ServiceError> {
        match loaded.catch_up(&*self.store).await {
            Err(ServiceError::Unreadable { name, why }) => {
                // not tried again until somebody asks for it
                self.refuse(&name, &why);
                self.remove(loaded);
                Ok(())
            }
            caught_up => caught_up,
        }
    }

    /// Time goes on: those that were not asked for since `idle_since_ms`, and the longest unused of
    /// those that take more room than there is. Of an idle experiment with an open batch, the
    /// comparisons that are out are not forgotten, and one with clicks that wait is kept until they
    /// are settled.
    pub fn droppable(&self, now_ms: i64, idle_since_ms: i64) -> Vec<Arc<LoadedExperiment>> {
        self.now_ms.store(now_ms, Ordering::Relaxed);
        let mut lives = self.all();
        lives.sort_by_key(|loaded| loaded.last_used_ms());
        let mut bytes: u64 = lives.iter().map(|loaded| loaded.bytes()).sum();
        let newest = lives.last().map(|loaded| loaded.id);
        lives.retain(|loaded| {
            let idle = loaded.last_used_ms() < idle_since_ms
                && !loaded.waits_for_its_batch(now_ms)
                && !loaded.has_open_pages();
            // however large, the newest stays: somebody asks for it
            let dropped = idle || (bytes > self.memory_bytes && Some(loaded.id) != newest);
            if dropped {
                bytes -= loaded.bytes();
            }
            dropped
        });
        lives
    }

    /// Forget an experiment. The next request for it loads it again.
    pub fn remove(&self, loaded: &Arc<LoadedExperiment>) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if slots
            .get(&loaded.name)
            .and_then(|slot| slot.get())
            .is_some_and(|kept| Arc::ptr_eq(kept, loaded))
        {
            slots.remove(&loaded.name);
        }
        if by_id.get(&loaded.id).is_some_and(|kept| Arc::ptr_eq(kept, loaded)) {
            by_id.remove(&loaded.id);
        }
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(loaded));
    }

    /// Those that were dropped and may still have self-duels to write; let go of those that have
    /// none.
    pub fn leaving(&self) -> Vec<Arc<LoadedExperiment>> {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        // nobody else holds it, so nothing can be added: what it has is all that there is to write
        leaving.retain(|loaded| Arc::strong_count(loaded) > 1 || loaded.has_self_duels());
        leaving.clone()
    }
}
