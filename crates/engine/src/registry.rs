//! The experiments that this process has in memory: loaded on first use, kept up to date with the
//! store, and evicted when they are idle or exceed the memory limit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OnceCell, mpsc};
use tracing::Instrument as _;

use crate::condition::Condition;
use crate::error::EngineError;
use crate::loaded::{LoadedExperiment, Process};
use crate::metrics::Metrics;
use rankduel_store::{ExperimentId, Head, SharedStore, in_time};

/// How long an experiment that could not be read is refused without another attempt: each attempt
/// folds its log again.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Above the memory limit, experiments are evicted down to this part of it. So eviction, which
/// looks at all of them, does not run at each load.
const EVICT_TO_PERCENT: u64 = 90;

type Slot = Arc<OnceCell<Arc<LoadedExperiment>>>;

/// Why an experiment is not served.
struct Refusal {
    why: String,
    at: Instant,
}

/// Experiments by name, loaded on first use.
pub struct Registry {
    store: SharedStore,
    process: Process,
    metrics: Arc<Metrics>,
    slots: RwLock<HashMap<String, Slot>>,
    by_id: RwLock<HashMap<ExperimentId, Arc<LoadedExperiment>>>,
    refused: Mutex<HashMap<String, Refusal>>,
    /// Evicted experiments. A request may still hold one and count a self-duel.
    draining: Mutex<Vec<Arc<LoadedExperiment>>>,
    /// Unix milliseconds of the last maintenance round: precise enough to find idle experiments.
    now_ms: AtomicI64,
    memory_bytes: u64,
    /// About the bytes of all experiments in memory: counted by [`Registry::evictable`], and kept
    /// since then as experiments are loaded and evicted. Counting them at each load would make
    /// loading slower the more experiments there are.
    bytes: AtomicU64,
    /// The memory limit is exceeded.
    pub(crate) overfull: Notify,
    /// Experiments that may conclude.
    due: mpsc::UnboundedSender<ExperimentId>,
}

impl Registry {
    /// An empty registry with this memory limit for all experiments together. `due` takes the ids
    /// of those that may conclude.
    pub fn new(
        store: SharedStore,
        process: Process,
        metrics: Arc<Metrics>,
        now_ms: i64,
        memory_bytes: u64,
        due: mpsc::UnboundedSender<ExperimentId>,
    ) -> Self {
        Self {
            store,
            process,
            metrics,
            slots: RwLock::default(),
            by_id: RwLock::default(),
            refused: Mutex::default(),
            draining: Mutex::default(),
            now_ms: AtomicI64::new(now_ms),
            memory_bytes,
            bytes: AtomicU64::new(0),
            overfull: Notify::new(),
            due,
        }
    }

    /// The experiment with this name. Concurrent requests share one load. The load continues when
    /// the requests are cancelled; otherwise a log that takes longer to fold than the time limit of
    /// a request could never be loaded.
    pub async fn get(self: &Arc<Self>, name: &str) -> Result<Arc<LoadedExperiment>, EngineError> {
        if let Some(loaded) = self.in_memory(name) {
            return Ok(loaded);
        }
        if let Some(why) = self.refusal(name) {
            return Err(EngineError::Unreadable { name: name.into(), why });
        }
        let (registry, name) = (Arc::clone(self), name.to_owned());
        let load = async move { registry.load(&name).await };
        tokio::spawn(load.in_current_span()).await.map_err(|error| {
            EngineError::Internal(format!("an experiment could not be loaded: {error}"))
        })?
    }

    async fn load(&self, name: &str) -> Result<Arc<LoadedExperiment>, EngineError> {
        let slot = self.slot(name);
        let loaded = slot.get_or_try_init(|| self.open(name)).await.cloned();
        match &loaded {
            Ok(_) => {
                self.refusals().remove(name);
                if self.bytes.load(Ordering::Relaxed) > self.memory_bytes {
                    self.overfull.notify_one();
                }
            }
            Err(error) => {
                self.remove_empty(name, &slot);
                if let EngineError::Unreadable { why, .. } = error {
                    self.refuse(name, why);
                }
            }
        }
        loaded
    }

    /// Load an experiment that has its slot, and enter it by its id.
    async fn open(&self, name: &str) -> Result<Arc<LoadedExperiment>, EngineError> {
        let record = in_time(self.store.experiment(name)).await?;
        let record = record.ok_or_else(|| EngineError::NotFound(name.into()))?;
        let before = self.before(record.id);
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let (store, metrics, due) = (&*self.store, &*self.metrics, self.due.clone());
        let loaded = LoadedExperiment::open(
            store,
            record,
            self.process,
            metrics,
            due,
            now_ms,
            before.as_deref(),
        )
        .await?;
        self.metrics.experiment_loads.inc();
        loaded.touch(now_ms);
        let bytes = loaded.bytes();
        let broken = {
            let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
            // under the lock: `evictable` counts what is in the map
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            by_id.insert(loaded.id, Arc::clone(&loaded))
        };
        if let Some(broken) = broken {
            self.subtract(broken.bytes());
        }
        Ok(loaded)
    }

    /// The experiment that one with this id takes the place of in this process, if it goes on with
    /// what that one has issued.
    fn before(&self, id: ExperimentId) -> Option<Arc<LoadedExperiment>> {
        let evicted = || self.draining().iter().rev().find(|it| it.id == id).cloned();
        self.with_id(id).or_else(evicted).filter(|it| it.is_followed())
    }

    /// The slot to load an experiment into; a broken experiment is moved out of it.
    fn slot(&self, name: &str) -> Slot {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(name.to_string()).or_default();
        if slot.get().is_some_and(|loaded| loaded.is_broken()) {
            self.draining().extend(slot.get().cloned());
            *slot = Slot::default();
        }
        Arc::clone(slot)
    }

    /// Remove a slot that nothing was loaded into: slots of names that do not exist must not
    /// accumulate.
    fn remove_empty(&self, name: &str, slot: &Slot) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.get(name).is_some_and(|kept| Arc::ptr_eq(kept, slot) && !kept.initialized()) {
            slots.remove(name);
        }
    }

    /// The experiment with this name, if it is in memory. Counts as a request for it.
    pub fn in_memory(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let loaded = slots.get(name)?.get().filter(|loaded| !loaded.is_broken())?;
        loaded.touch(self.now_ms.load(Ordering::Relaxed));
        Some(Arc::clone(loaded))
    }

    /// The experiment with this name, if it is in memory. Does not count as a request for it.
    pub fn peek(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(name)?.get().filter(|loaded| !loaded.is_broken()).cloned()
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<String, Refusal>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why an experiment cannot be served here, if a request has tried lately.
    pub fn refusal(&self, name: &str) -> Option<String> {
        self.refusals()
            .get(name)
            .filter(|refusal| refusal.at.elapsed() < REFUSED_FOR)
            .map(|refusal| refusal.why.clone())
    }

    /// The experiments that cannot be served here, by name.
    pub fn refused_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.refusals().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Remember why an experiment cannot be served. Each reason is logged once.
    fn refuse(&self, name: &str, why: &str) {
        let refusal = Refusal { why: why.into(), at: Instant::now() };
        let before = self.refusals().insert(name.into(), refusal);
        if before.is_none_or(|before| before.why != why) {
            tracing::error!(experiment = name, reason = why, "an experiment cannot be served here");
        }
    }

    /// Number of requested experiments that this program cannot read.
    pub fn refused(&self) -> usize {
        self.refusals().len()
    }

    /// Every experiment in memory, by name.
    pub fn all(&self) -> Vec<Arc<LoadedExperiment>> {
        let mut all = self.unordered();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Every experiment in memory, in any order.
    pub(crate) fn unordered(&self) -> Vec<Arc<LoadedExperiment>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        by_id.values().cloned().collect()
    }

    /// The experiment with this id, if it is in memory.
    pub(crate) fn with_id(&self, id: ExperimentId) -> Option<Arc<LoadedExperiment>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// The name of the experiment with this id, if it is in memory.
    pub fn name_of(&self, id: ExperimentId) -> Option<String> {
        self.with_id(id).map(|loaded| loaded.name.clone())
    }

    /// Bring every experiment in memory up to date with the store: log entries and record changes
    /// of other processes.
    pub async fn follow(self: &Arc<Self>) -> Result<(), EngineError> {
        // positions before heads, so that an entry folded meanwhile does not look lost
        let followed: Vec<_> =
            self.with_current_spec().into_iter().map(|it| (it.position(), it)).collect();
        if followed.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = followed.iter().map(|(_, loaded)| loaded.id).collect();
        let heads: HashMap<_, _> =
            self.store.heads(&ids).await?.into_iter().map(|head| (head.experiment, head)).collect();
        let behind = |(position, loaded): &(u64, Arc<LoadedExperiment>)| {
            heads.get(&loaded.id).map_or(0, |head| head.head.saturating_sub(*position))
        };
        let lag = followed.iter().map(behind).max().unwrap_or(0);
        self.metrics.replica_lag_entries.set(lag as i64);
        // one experiment that cannot be followed must not hold up the others
        let mut first_error = None;
        for (position, loaded) in followed {
            let Some(head) = heads.get(&loaded.id) else {
                loaded.report_gone(&self.metrics);
                self.remove(&loaded);
                continue;
            };
            if head.head < position {
                loaded.report_log_regression(&self.metrics, head.head, position);
                // the next request loads it again; its self-duels are still flushed
                self.remove(&loaded);
                continue;
            }
            if let Err(error) = self.follow_one(&loaded, head).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Every experiment in memory. Those with a stale spec are left out and loaded again in the
    /// background.
    fn with_current_spec(self: &Arc<Self>) -> Vec<Arc<LoadedExperiment>> {
        let (stale, current): (Vec<_>, Vec<_>) =
            self.unordered().into_iter().partition(|it| it.condition() == Condition::Stale);
        for loaded in stale {
            self.remove(&loaded);
            let registry = Arc::clone(self);
            // if loading fails, the next request for the experiment gets the error
            tokio::spawn(async move { registry.get(&loaded.name).await.map(drop) });
        }
        current
    }

    /// Fold these experiments up to these positions at least, as notices of other processes demand.
    pub async fn follow_noticed(
        &self,
        noticed: HashMap<ExperimentId, u64>,
    ) -> Result<(), EngineError> {
        let mut first_error = None;
        for (id, head) in noticed {
            let loaded = self.with_id(id).filter(|loaded| !loaded.is_broken());
            let Some(loaded) = loaded else { continue };
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
    ) -> Result<(), EngineError> {
        if !loaded.is_broken() && head.head > loaded.position() {
            self.catch_up(loaded).await?;
        }
        // most changes of the record were folded from the log; this finds the others
        if head.version > loaded.with_record(|record| record.version)
            && let Some(record) = self.store.experiment(&loaded.name).await?
        {
            loaded.set_record(record);
        }
        Ok(())
    }

    async fn catch_up(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        match loaded.catch_up(&*self.store).await {
            Err(EngineError::Unreadable { name, why }) => {
                // the next request for it tries again
                self.refuse(&name, &why);
                self.remove(loaded);
                Ok(())
            }
            caught_up => caught_up,
        }
    }

    /// Set the time and return the experiments to evict, the least recently used ones first: those
    /// without a request since `idle_since_ms`, and, if all together exceed the memory limit, as
    /// many as bring them to [`EVICT_TO_PERCENT`] of it. An idle experiment stays while it has open
    /// work.
    pub fn evictable(&self, now_ms: i64, idle_since_ms: i64) -> Vec<Arc<LoadedExperiment>> {
        self.now_ms.store(now_ms, Ordering::Relaxed);
        let (all, before) = {
            let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
            let all: Vec<_> = by_id.values().cloned().collect();
            (all, self.bytes.load(Ordering::Relaxed))
        };
        // each time of use once: it changes while the list is sorted
        let mut by_use: Vec<_> =
            all.into_iter().map(|loaded| (loaded.last_used_ms(), loaded.bytes(), loaded)).collect();
        by_use.sort_by_key(|(used_ms, ..)| *used_ms);
        let mut bytes: u64 = by_use.iter().map(|(_, bytes, _)| bytes).sum();
        // not a plain store: experiments are loaded and evicted meanwhile
        self.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        let bound = match bytes > self.memory_bytes {
            true => self.memory_bytes / 100 * EVICT_TO_PERCENT,
            false => self.memory_bytes,
        };
        let newest = by_use.last().map(|(.., loaded)| loaded.id);
        by_use.retain(|(used_ms, its_bytes, loaded)| {
            let idle = *used_ms < idle_since_ms && !loaded.has_open_work(now_ms);
            // the most recently used one stays, however large it is
            let evict = idle || (bytes > bound && Some(loaded.id) != newest);
            if evict {
                bytes -= its_bytes;
            }
            evict
        });
        by_use.into_iter().map(|(.., loaded)| loaded).collect()
    }

    /// Evict an experiment. The next request for it loads it again.
    pub fn remove(&self, loaded: &Arc<LoadedExperiment>) {
        // before the locks: the fold may be locked for longer
        let bytes = loaded.bytes();
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
            self.subtract(bytes);
        }
        self.draining().push(Arc::clone(loaded));
    }

    /// Count fewer bytes. An experiment may have grown since it was counted; the next count of
    /// [`Registry::evictable`] is exact.
    fn subtract(&self, bytes: u64) {
        let less = |sum: u64| Some(sum.saturating_sub(bytes));
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Evicted experiments that may still have self-duels or values to flush. Forgets those that no
    /// request holds and that have nothing to flush.
    pub fn still_draining(&self) -> Vec<Arc<LoadedExperiment>> {
        let mut draining = self.draining();
        // the only holder cannot count another self-duel
        draining.retain(|loaded| Arc::strong_count(loaded) > 1 || loaded.unlogged.any());
        draining.clone()
    }

    fn draining(&self) -> MutexGuard<'_, Vec<Arc<LoadedExperiment>>> {
        self.draining.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
