//! What a process does every two seconds ([`maintain_every`]): flush self-duels, settle clicks,
//! complete cohorts, save snapshots, read the signing keys again, run the periodic tasks of the
//! service, and evict experiments that are idle or exceed the memory limit.
//!
//! [`maintain_every`]: crate::engine::settings::EngineSettings::maintain_every

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::access::Actor;
use crate::engine::Engine;
use crate::engine::due::DueExperiments;
use crate::engine::error::EngineError;
use crate::engine::loaded::LoadedExperiment;
use crate::events::{ControlEvent, Event};
use crate::store::{Appended, AuditNote, NewEvent, StoreError};

/// Rounds from one refresh of the keys to the next.
const KEYS_EVERY_ROUNDS: u32 = 5;
/// Time limit of maintenance other than flushing self-duels.
const WITHIN: Duration = Duration::from_secs(10);
/// Duels of one experiment that are settled in one round.
const SETTLE_AT_ONCE: usize = 10_000;

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

/// Run maintenance rounds until the engine is dropped. A task that fails is done in a later round.
pub(crate) async fn run_maintenance(
    engine: Weak<Engine>,
    tasks: Weak<dyn PeriodicTasks>,
    every: Duration,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    for round in 0u32.. {
        let Some(registry) = engine.upgrade().map(|engine| Arc::clone(&engine.registry)) else {
            return;
        };
        tokio::select! {
            _ = ticks.tick() => {}
            () = registry.overfull.notified() => {}
        }
        drop(registry);
        let (Some(engine), Some(tasks)) = (engine.upgrade(), tasks.upgrade()) else { return };
        engine.flush_self_duels().await;
        // apart from the experiments: a revoked key must not stay valid because they take long
        let refresh = async {
            engine.signing_keys.refresh().await.map_err(EngineError::from)?;
            tasks.refresh_keys().await
        };
        let refreshed = if round % KEYS_EVERY_ROUNDS == 0 { within(refresh).await } else { Ok(()) };
        let maintained = within(engine.maintain_experiments(&*tasks, round as usize)).await;
        match refreshed.and(maintained) {
            Ok(()) => failing = false,
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "clicks, snapshots and keys wait for the store");
            }
            Err(_) => {}
        }
    }
}

/// Maintain due experiments until the engine is dropped. If that fails, or an experiment is not in
/// the registry yet, the next maintenance round does it.
pub(crate) async fn maintain_due(
    engine: Weak<Engine>,
    tasks: Weak<dyn PeriodicTasks>,
    due: Arc<DueExperiments>,
) {
    loop {
        let ids = due.next().await;
        let (Some(engine), Some(tasks)) = (engine.upgrade(), tasks.upgrade()) else { return };
        for loaded in engine.registry.all().into_iter().filter(|it| ids.contains(&it.id)) {
            if let Err(error) = within(tasks.maintain(&loaded)).await {
                tracing::debug!(%error, experiment = loaded.name, "left for the next round");
            }
        }
    }
}

/// Give up `work` of maintenance after a while, so that a store that hangs does not stop the rest.
async fn within(work: impl Future<Output = Result<(), TaskError>>) -> Result<(), TaskError> {
    tokio::time::timeout(WITHIN, work)
        .await
        .unwrap_or_else(|_| Err(StoreError::Slow(WITHIN).into()))
}

impl Engine {
    /// Append the self-duels that were issued since the last flush. Those that cannot be written
    /// now are written later.
    pub(crate) async fn flush_self_duels(self: &Arc<Self>) {
        let mut flushes = JoinSet::new();
        for loaded in self.registry.all().into_iter().chain(self.registry.drain()) {
            if loaded.has_self_duels() {
                let engine = Arc::clone(self);
                // concurrently, so that one commit has them all
                flushes.spawn(async move { engine.flush(&loaded).await });
            }
        }
        while flushes.join_next().await.is_some() {}
    }

    /// Append the self-duels of one experiment. Returns whether the log has them.
    async fn flush(&self, loaded: &Arc<LoadedExperiment>) -> bool {
        let Some((nonce, counts)) = loaded.self_duels_to_flush(|| self.fresh_nonce()) else {
            return true;
        };
        match self.append_control(loaded, nonce, ControlEvent::SelfDuels { counts }).await {
            Ok(appended) => {
                if appended == Appended::Archived {
                    tracing::info!(
                        experiment = loaded.name,
                        "self-duels from before the experiment was archived are not counted"
                    );
                }
                loaded.self_duels_flushed(nonce);
                true
            }
            Err(error) => {
                tracing::warn!(%error, experiment = loaded.name, "self-duels are not in the log yet");
                false
            }
        }
    }

    /// Maintain every experiment in memory. A failure does not stop the others; the first error is
    /// returned. Each round begins with another experiment, because its time limit may end it
    /// early.
    async fn maintain_experiments(
        &self,
        tasks: &dyn PeriodicTasks,
        round: usize,
    ) -> Result<(), TaskError> {
        let mut all = self.registry.all();
        let begin = round % all.len().max(1);
        all.rotate_left(begin);
        let mut done = Ok(());
        for loaded in &all {
            for step in [
                self.settle_pages(loaded).await.map_err(TaskError::from),
                self.complete_cohorts(loaded).await.map_err(TaskError::from),
                self.save_due_snapshot(loaded).await.map_err(TaskError::from),
                self.note_ended_batches(loaded).await.map_err(TaskError::from),
                tasks.maintain(loaded).await,
            ] {
                if let Err(error) = &step {
                    tracing::debug!(%error, experiment = loaded.name, "left for the next round");
                }
                done = done.and(step);
            }
        }
        done.and(self.evict().await.map_err(TaskError::from))
    }

    /// Settle the duels whose time to collect clicks is over. Every process tries, and one of them
    /// succeeds.
    async fn settle_pages(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), EngineError> {
        if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(());
        }
        // without a fold there is nothing to settle; it is loaded again
        let Ok(due) = loaded.pages_to_settle(self.now_ms(), SETTLE_AT_ONCE) else {
            return Ok(());
        };
        if due.is_empty() {
            return Ok(());
        }
        let settled = |nonce| NewEvent::new(nonce, Event::Control(ControlEvent::Settled {}));
        self.writer.append(loaded, due.into_iter().map(settled).collect()).await.map(drop)
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

    /// Note the ends of batches in the audit log. Every process that folds one tries; the audit log
    /// accepts each once.
    pub(crate) async fn note_ended_batches(
        &self,
        loaded: &LoadedExperiment,
    ) -> Result<(), EngineError> {
        let ended = loaded.ended_batches();
        if ended.is_empty() {
            return Ok(());
        }
        let notes: Vec<_> = ended
            .iter()
            .map(|ended| AuditNote {
                once: Some(match loaded.spec.refolds() {
                    0 => format!("batch-closed {} {}", loaded.id, ended.batch),
                    refolds => format!("batch-closed {} {} {refolds}", loaded.id, ended.batch),
                }),
                after: Some(json!({"batch": ended.batch, "position": ended.position})),
                ..AuditNote::of_experiment(
                    &Actor::service(),
                    "batch-closed",
                    &loaded.name,
                    ended.at,
                )
            })
            .collect();
        self.store.add_audit(&notes).await?;
        loaded.ends_noted(&ended);
        Ok(())
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
        // first: a process that starts from the snapshot does not fold these ends again
        self.note_ended_batches(loaded).await?;
        self.store.save_snapshot(&snapshot).await?;
        loaded.snapshot_saved(&snapshot);
        Ok(())
    }

    /// Evict idle experiments and those that exceed the memory limit, after flushing their
    /// self-duels and saving a snapshot.
    async fn evict(&self) -> Result<(), EngineError> {
        let now = self.now_ms();
        let mut done = Ok(());
        for loaded in self.registry.evictable(now, now - self.idle_after_ms) {
            if !self.flush(&loaded).await {
                continue;
            }
            let saved = if !loaded.is_broken() && loaded.snapshot_is_behind() {
                self.save_snapshot(&loaded).await
            } else {
                Ok(())
            };
            if saved.is_ok() {
                self.registry.remove(&loaded);
                tracing::debug!(experiment = loaded.name, "evicted from memory");
            }
            done = done.and(saved);
        }
        done
    }
}
