//! The periodic work of a process, every two seconds ([`maintain_every`]), in tasks that do not wait
//! for each other: append self-duels; evict experiments that are idle or exceed the memory limit;
//! read the keys again, and load experiments that are due (both less often); and, for each
//! experiment in memory, settle clicks, complete cohorts, save a snapshot and run the periodic
//! tasks of the service.
//!
//! The last task can take long with tens of thousands of busy experiments. Its rounds are bounded
//! in time, and each goes on where the one before ended, so every experiment has its turn.
//!
//! [`maintain_every`]: crate::settings::EngineSettings::maintain_every

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Interval, MissedTickBehavior};

use crate::Engine;
use crate::error::EngineError;
use crate::loaded::LoadedExperiment;
use rankduel_store::events::{ControlEvent, Event, PageValues};
use rankduel_store::{Appended, DueExperiment, ExperimentId, NewEvent, in_time, within};

/// The keys are read again after this many intervals of maintenance: 8 seconds, so that a key that
/// was revoked is refused within 10 seconds also if reading takes a while.
const KEYS_EVERY: u32 = 4;
/// Experiments that are due are looked for after this many intervals of maintenance.
const DUE_EVERY: u32 = 5;
/// An experiment that is due for this long is in the memory of no server: one that has it maintains
/// it in time.
const DUE_WITHIN_MS: i64 = 30_000;
/// Experiments that are due are loaded so many at a time.
const DUE_AT_ONCE: u32 = 8;
/// Time limit of one step of maintenance, which is a few statements of the store. A store that
/// hangs does not stop the other steps.
const STEP: Duration = Duration::from_secs(10);
/// Experiments that are maintained or evicted at once. Those that wait for a commit share it.
const AT_ONCE: usize = 16;
/// Evicting begins anew after this time, with those that are the least recently used then.
const EVICT_FOR: Duration = Duration::from_secs(5);
/// Pause after evicting: until then, further experiments may be loaded above the memory limit.
const EVICT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Duels that are settled with one append. Those of all experiments that are maintained at once
/// must leave room in the queue of the writer.
const SETTLE_AT_ONCE: usize = 2_000;
/// Appends that settle duels of one experiment in one round.
const SETTLE_APPENDS: usize = 5;

/// Why a task was not done. It is done in a later round.
pub type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// Work that the service adds to the rounds of the engine.
#[async_trait]
pub trait PeriodicTasks: Send + Sync {
    /// Read keys again that other processes may have changed.
    async fn refresh_keys(&self) -> Result<(), TaskError>;

    /// Maintain one experiment in memory. Runs in every round, and as soon as the experiment has a
    /// verdict or reaches its limit of duels.
    async fn maintain(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), TaskError>;
}

/// Ticks at this interval. After a round that took longer, the next tick comes at once.
fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Logs the first failure of a task, and the first one after each success.
struct FailureLog {
    /// The work that waits until the task succeeds.
    waits: &'static str,
    has_failed: bool,
}

impl FailureLog {
    fn new(waits: &'static str) -> Self {
        Self { waits, has_failed: false }
    }

    fn note<E: std::fmt::Display>(&mut self, done: Result<(), E>) {
        match done {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                tracing::warn!(%error, "{} for the store", self.waits);
            }
            Err(_) => {}
        }
    }
}

/// Append what is not in the log yet until the engine is dropped.
pub(crate) async fn flush_unlogged(engine: Weak<Engine>, every: Duration) {
    let mut ticks = ticks(every);
    loop {
        ticks.tick().await;
        let Some(engine) = engine.upgrade() else { return };
        engine.flush_unlogged().await;
    }
}

/// Read the keys again until the engine is dropped.
pub(crate) async fn refresh_keys(
    engine: Weak<Engine>,
    tasks: Weak<dyn PeriodicTasks>,
    every: Duration,
) {
    let mut ticks = ticks(every.saturating_mul(KEYS_EVERY));
    let mut failures = FailureLog::new("keys wait");
    loop {
        ticks.tick().await;
        let (Some(engine), Some(tasks)) = (engine.upgrade(), tasks.upgrade()) else { return };
        let signing = within(STEP, async {
            Ok(engine.signing_keys.refresh().await.map_err(EngineError::from)?)
        });
        let (signing, others) = tokio::join!(signing, within(STEP, tasks.refresh_keys()));
        failures.note(signing.and(others));
    }
}

/// Evict experiments until the engine is dropped: at intervals, and once the memory limit is
/// exceeded.
pub(crate) async fn bound_memory(engine: Weak<Engine>, every: Duration) {
    let mut ticks = ticks(every);
    let mut failures = FailureLog::new("experiments that leave memory wait");
    loop {
        let Some(registry) = engine.upgrade().map(|engine| Arc::clone(&engine.registry)) else {
            return;
        };
        tokio::select! {
            _ = ticks.tick() => {}
            () = registry.overfull.notified() => {}
        }
        drop(registry);
        let Some(engine) = engine.upgrade() else { return };
        failures.note(engine.evict().await);
        drop(engine);
        tokio::time::sleep(EVICT_AGAIN_AFTER.min(every)).await;
    }
}

/// Maintain the experiments in memory until the engine is dropped. What fails is done in a later
/// round.
pub(crate) async fn maintain_experiments(
    engine: Weak<Engine>,
    tasks: Weak<dyn PeriodicTasks>,
    every: Duration,
) {
    let mut ticks = ticks(every);
    let mut failures = FailureLog::new("clicks and snapshots wait");
    let mut last = String::new();
    loop {
        ticks.tick().await;
        let (Some(engine), Some(tasks)) = (engine.upgrade(), tasks.upgrade()) else { return };
        failures.note(engine.maintain_experiments(&tasks, &mut last, every).await);
    }
}

/// Maintain experiments that may conclude, because their fold has just reached a verdict or a limit
/// of duels, until the engine is dropped. The maintenance rounds find them too, also those that
/// fail here or are not in the registry yet. But a busy experiment shows thousands of pages from
/// one round to the next.
pub(crate) async fn maintain_due(
    engine: Weak<Engine>,
    tasks: Weak<dyn PeriodicTasks>,
    mut due: mpsc::UnboundedReceiver<ExperimentId>,
) {
    while let Some(id) = due.recv().await {
        let (Some(engine), Some(tasks)) = (engine.upgrade(), tasks.upgrade()) else { return };
        if let Some(loaded) = engine.registry.with_id(id)
            && let Err(error) = within(STEP, tasks.maintain(&loaded)).await
        {
            tracing::debug!(%error, experiment = loaded.name, "left for the next round");
        }
    }
}

/// Load experiments that are due and that no server has in memory, so that they are maintained,
/// until the engine is dropped: a few at a time, also after those that cannot be loaded.
pub(crate) async fn load_due(engine: Weak<Engine>, every: Duration) {
    let mut ticks = ticks(every.saturating_mul(DUE_EVERY));
    let mut failures = FailureLog::new("experiments that are due wait");
    let mut after = None;
    loop {
        ticks.tick().await;
        let Some(engine) = engine.upgrade() else { return };
        failures.note(engine.load_due(&mut after).await);
    }
}

/// Do the work of each experiment, [`AT_ONCE`] at a time, until all are done or the time is over. A
/// failure does not stop the others; the first error is returned.
async fn for_each<W>(
    all: Vec<Arc<LoadedExperiment>>,
    for_at_most: Duration,
    mut work: impl FnMut(Arc<LoadedExperiment>) -> W,
) -> Result<(), TaskError>
where
    W: Future<Output = Result<(), TaskError>> + Send + 'static,
{
    let started = Instant::now();
    let mut done = Ok(());
    let finished =
        |one: Result<_, JoinError>| one.unwrap_or_else(|error: JoinError| Err(error.into()));
    let mut running = JoinSet::new();
    for loaded in all {
        if running.len() >= AT_ONCE
            && let Some(one) = running.join_next().await
        {
            done = done.and(finished(one));
            if started.elapsed() >= for_at_most {
                break;
            }
        }
        running.spawn(work(loaded));
    }
    while let Some(one) = running.join_next().await {
        done = done.and(finished(one));
    }
    done
}

impl Engine {
    /// Append what was issued since the last flush. What cannot be written now is written later.
    pub(crate) async fn flush_unlogged(self: &Arc<Self>) {
        let mut flushes = JoinSet::new();
        for loaded in self.registry.unordered().into_iter().chain(self.registry.still_draining()) {
            if loaded.unlogged.any() {
                let engine = Arc::clone(self);
                // concurrently, so that one commit has them all
                flushes.spawn(async move { engine.flush(&loaded).await.is_ok() });
            }
        }
        while flushes.join_next().await.is_some() {}
    }

    /// Append what one experiment has issued until now.
    pub(crate) async fn flush(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        let _turn = loaded.unlogged.turn().await;
        self.flush_in_turn(loaded).await
    }

    pub(crate) async fn flush_in_turn(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), EngineError> {
        // while entries of an earlier flush are pending, no new ones are made
        self.append_pending(loaded).await?;
        {
            // without a fold nobody knows, and the log takes a page twice
            let fold = loaded.fold().ok();
            let is_known =
                |page: &PageValues| fold.as_ref().is_some_and(|it| it.state().has_page(page));
            loaded.unlogged.collect(|| self.fresh_nonce(), is_known);
        }
        self.append_pending(loaded).await
    }

    async fn append_pending(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        while let Some((nonce, event)) = loaded.unlogged.next() {
            match self.append_control(loaded, nonce, event).await {
                Ok(appended) => {
                    if appended == Appended::Archived {
                        tracing::info!(
                            experiment = loaded.name,
                            "pages from before the experiment was archived are not counted"
                        );
                    }
                    loaded.unlogged.confirmed(nonce);
                }
                Err(error) => {
                    let experiment = &loaded.name;
                    tracing::warn!(%error, experiment, "issued pages are not in the log yet");
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Load the next experiments that are due; `after` becomes the last one of them.
    async fn load_due(&self, after: &mut Option<DueExperiment>) -> Result<(), EngineError> {
        let now = self.now_ms() - DUE_WITHIN_MS;
        let due = in_time(self.store.due(now, after.as_ref(), DUE_AT_ONCE)).await?;
        for due in &due {
            if self.registry.peek(&due.name).is_none()
                && let Err(error) = self.registry.get(&due.name).await.map(|loaded| loaded.wake())
            {
                tracing::debug!(%error, experiment = due.name, "due, and cannot be loaded");
            }
        }
        *after = due.into_iter().nth(DUE_AT_ONCE as usize - 1);
        Ok(())
    }

    /// Maintain the experiments in memory by name, from the one after `last` on, until each had its
    /// turn or the time is over; `last` becomes the last one that had its turn. A failure does not
    /// stop the others; the first error is returned.
    async fn maintain_experiments(
        self: &Arc<Self>,
        tasks: &Arc<dyn PeriodicTasks>,
        last: &mut String,
        for_at_most: Duration,
    ) -> Result<(), TaskError> {
        let mut all = self.registry.all();
        let begin = all.partition_point(|loaded| loaded.name <= *last);
        all.rotate_left(begin);
        for_each(all, for_at_most, |loaded| {
            last.clone_from(&loaded.name);
            let (engine, tasks) = (Arc::clone(self), Arc::clone(tasks));
            async move { engine.maintain_one(&*tasks, &loaded).await }
        })
        .await
    }

    /// Maintain one experiment. A failure of one step does not stop the others; the first error is
    /// returned.
    async fn maintain_one(
        &self,
        tasks: &dyn PeriodicTasks,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), TaskError> {
        let mut done = Ok(());
        for step in [
            within(STEP, async { Ok(self.settle_pages(loaded).await?) }).await,
            within(STEP, async { Ok(self.complete_cohorts(loaded).await?) }).await,
            within(STEP, async { Ok(self.complete_values(loaded).await?) }).await,
            within(STEP, async { Ok(self.save_due_snapshot(loaded).await?) }).await,
            within(STEP, tasks.maintain(loaded)).await,
        ] {
            if let Err(error) = &step {
                tracing::debug!(%error, experiment = loaded.name, "left for the next round");
            }
            done = done.and(step);
        }
        done
    }

    /// Settle the duels whose time to collect clicks is over. Every process tries, and one of them
    /// succeeds.
    async fn settle_pages(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(());
        }
        for _ in 0..SETTLE_APPENDS {
            // without a fold there is nothing to settle; it is loaded again
            let Ok(due) = loaded.pages_to_settle(self.now_ms(), SETTLE_AT_ONCE) else {
                return Ok(());
            };
            let is_last = due.len() < SETTLE_AT_ONCE;
            let settled = |nonce| NewEvent::new(nonce, Event::Control(ControlEvent::Settled {}));
            if !due.is_empty() {
                self.writer.append(loaded, due.into_iter().map(settled).collect()).await?;
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Save a snapshot of every experiment that has folded enough entries since its last one.
    /// Returns the first error, after all were tried.
    pub(crate) async fn save_snapshots(&self) -> Result<(), EngineError> {
        let mut done = Ok(());
        for loaded in self.registry.all() {
            done = done.and(self.save_due_snapshot(&loaded).await);
        }
        done
    }

    async fn save_due_snapshot(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        if loaded.is_broken() || !loaded.snapshot_is_due() {
            return Ok(());
        }
        self.save_snapshot(loaded).await
    }

    async fn save_snapshot(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        // with many rankers it is megabytes: not on a thread that serves requests
        let (saved, now_ms) = (Arc::clone(loaded), self.now_ms());
        let snapshot = tokio::task::spawn_blocking(move || saved.snapshot(now_ms));
        let snapshot = snapshot.await.map_err(|error| {
            EngineError::Internal(format!("a snapshot was not made: {error}"))
        })??;
        self.store.save_snapshot(&snapshot).await?;
        loaded.snapshot_saved(&snapshot);
        Ok(())
    }

    /// Evict idle experiments and those that exceed the memory limit, after flushing their
    /// self-duels and saving a snapshot. A failure does not stop the others; the first error is
    /// returned.
    async fn evict(self: &Arc<Self>) -> Result<(), TaskError> {
        let now = self.now_ms();
        let evictable = self.registry.evictable(now, now - self.idle_after_ms);
        let done = for_each(evictable, EVICT_FOR, |loaded| {
            let engine = Arc::clone(self);
            within(STEP, async move { Ok(engine.evict_one(&loaded).await?) })
        })
        .await;
        // forgets those that no request holds
        drop(self.registry.still_draining());
        done
    }

    async fn evict_one(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        if self.flush(loaded).await.is_err() {
            return Ok(());
        }
        if !loaded.is_broken() && loaded.snapshot_is_behind() {
            self.save_snapshot(loaded).await?;
        }
        self.registry.remove(loaded);
        self.metrics.experiment_evictions.inc();
        tracing::debug!(experiment = loaded.name, "evicted from memory");
        Ok(())
    }
}
