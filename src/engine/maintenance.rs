//! What a process does every two seconds: append self-duels, settle clicks that have waited, keep
//! snapshots, conclude what is certain, read the signing keys, and drop experiments that are idle
//! or take too much room.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::access::Actor;
use crate::engine::error::ServiceError;
use crate::engine::loaded::LoadedExperiment;
use crate::events::{ControlEvent, Event};
use crate::service::Service;
use crate::store::{Appended, AuditNote, NewEvent, StoreError};

/// How often.
const EVERY: Duration = Duration::from_secs(2);
/// The signing keys are read every so many rounds.
const KEYS_EVERY_ROUNDS: u32 = 5;
/// What of a round reads and writes more than self-duels is given up on after this time.
const WITHIN: Duration = Duration::from_secs(10);
/// Duels of one experiment that are settled in one round.
const SETTLE_AT_ONCE: usize = 10_000;
/// Entries folded between two snapshots of an experiment.
const SNAPSHOT_EVERY: u64 = 10_000;

/// Keep things up until the service is gone. What cannot be done now is done in a later round.
pub(crate) async fn run_maintenance(service: Weak<Service>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    for round in 0u32.. {
        let Some(registry) = service.upgrade().map(|service| Arc::clone(&service.registry)) else {
            return;
        };
        tokio::select! {
            _ = ticks.tick() => {}
            () = registry.overfull.notified() => {}
        }
        drop(registry);
        let Some(service) = service.upgrade() else { return };
        service.flush_self_duels().await;
        let keys = async {
            service.keys.refresh().await?;
            service.access.refresh().await?;
            Ok(service.access.note_uses().await?)
        };
        let work = service.keep_up_experiments(round as usize);
        // apart from the rest: a revoked key must not stay good because an experiment keeps the
        // round busy
        let keys_done = if round % KEYS_EVERY_ROUNDS == 0 { within(keys).await } else { Ok(()) };
        match keys_done.and(within(work).await) {
            Ok(()) => failing = false,
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "clicks, snapshots and keys wait for the store");
            }
            Err(_) => {}
        }
    }
}

async fn within(work: impl Future<Output = Result<(), ServiceError>>) -> Result<(), ServiceError> {
    tokio::time::timeout(WITHIN, work)
        .await
        .unwrap_or_else(|_| Err(StoreError::Slow(WITHIN).into()))
}

impl Service {
    /// Append the self-duels that were handed out since the last time. What cannot be written now
    /// is written later.
    pub(crate) async fn flush_self_duels(self: &Arc<Self>) {
        let mut flushes = JoinSet::new();
        for loaded in self.registry.all().into_iter().chain(self.registry.leaving()) {
            if loaded.has_self_duels() {
                let service = Arc::clone(self);
                // together, so that one commit takes them all
                flushes.spawn(async move { service.flush(&loaded).await });
            }
        }
        while flushes.join_next().await.is_some() {}
    }

    /// Append one experiment's self-duels; whether those that there were are in the log.
    async fn flush(&self, loaded: &Arc<LoadedExperiment>) -> bool {
        let Some((nonce, counts)) = loaded.self_duels_to_flush(|| self.fresh_nonce()) else {
            return true;
        };
        match self.append_control(loaded, nonce, ControlEvent::SelfDuels { counts }).await {
            Ok(appended) => {
                if appended == Appended::Archived {
                    tracing::info!(
                        experiment = loaded.name,
                        "self-duels from before it was archived are not counted"
                    );
                }
                loaded.self_duels_settled(nonce);
                true
            }
            Err(error) => {
                tracing::warn!(%error, experiment = loaded.name, "self-duels are not in the log yet");
                false
            }
        }
    }

    /// All that an experiment in memory wants done, for each of them, whatever becomes of the
    /// others; beginning with another one each round, for a round may have to end before its time.
    /// The first error, after all.
    async fn keep_up_experiments(&self, round: usize) -> Result<(), ServiceError> {
        let mut all = self.registry.all();
        let begin = round % all.len().max(1);
        all.rotate_left(begin);
        let mut done = Ok(());
        for loaded in &all {
            for step in [
                self.settle_pages(loaded).await,
                self.keep_snapshot(loaded, SNAPSHOT_EVERY).await,
                self.note_ended_batches(loaded).await,
                self.conclude_if_certain(loaded).await,
            ] {
                if let Err(error) = &step {
                    tracing::debug!(%error, experiment = loaded.name, "left for the next round");
                }
                done = done.and(step);
            }
        }
        done.and(self.make_room().await)
    }

    /// Settle the duels whose clicks have waited for their time. Every process tries, and one of
    /// them succeeds.
    async fn settle_pages(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), ServiceError> {
        if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(());
        }
        // one that is being folded anew has none for a moment
        let Ok(due) = loaded.pages_to_settle(self.clock.now_ms(), SETTLE_AT_ONCE) else {
            return Ok(());
        };
        if due.is_empty() {
            return Ok(());
        }
        let settled = |nonce| NewEvent::new(nonce, Event::Control(ControlEvent::Settled {}));
        self.writer.append(loaded, due.into_iter().map(settled).collect()).await.map(drop)
    }

    /// Keep a snapshot of every experiment that has moved on enough since its last one. The first
    /// error, after all.
    pub(crate) async fn keep_snapshots(&self) -> Result<(), ServiceError> {
        let mut done = Ok(());
        for loaded in self.registry.all() {
            done = done.and(self.keep_snapshot(&loaded, SNAPSHOT_EVERY).await);
        }
        done
    }

    /// Put the ends of batches into the audit log. Every process that folds one tries; the log
    /// takes it once.
    async fn note_ended_batches(&self, loaded: &LoadedExperiment) -> Result<(), ServiceError> {
        let ended = loaded.ended_batches();
        if ended.is_empty() {
            return Ok(());
        }
        let notes: Vec<_> = ended
            .iter()
            .map(|ended| AuditNote {
                once: Some(match loaded.spec.former_policies.len() {
                    0 => format!("batch-closed {} {}", loaded.id, ended.batch),
                    changes => format!("batch-closed {} {} {changes}", loaded.id, ended.batch),
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

    /// Before the end: what would be noted later.
    pub(crate) async fn note_uses_and_batches(&self) {
        if let Err(error) = self.access.note_uses().await {
            tracing::warn!(%error, "the last uses of keys are not noted");
        }
        for loaded in self.registry.all() {
            if let Err(error) = self.note_ended_batches(&loaded).await {
                tracing::warn!(%error, experiment = loaded.name, "ends of batches are noted at the next start");
            }
        }
    }

    async fn keep_snapshot(
        &self,
        loaded: &LoadedExperiment,
        every: u64,
    ) -> Result<(), ServiceError> {
        if !loaded.is_broken()
            && let Some(snapshot) = loaded.snapshot_if_due(every, self.clock.now_ms())?
        {
            // first: a start from the snapshot does not see the ends of batches before it
            self.note_ended_batches(loaded).await?;
            self.store.save_snapshot(&snapshot).await?;
            loaded.snapshot_kept(snapshot.position);
        }
        Ok(())
    }

    /// Drop what is idle and what there is no room for: self-duels into the log and a snapshot
    /// first.
    async fn make_room(&self) -> Result<(), ServiceError> {
        let now = self.clock.now_ms();
        let mut done = Ok(());
        for loaded in self.registry.droppable(now, now - self.idle_after_ms) {
            if !self.flush(&loaded).await {
                continue;
            }
            let kept = self.keep_snapshot(&loaded, 1).await;
            if kept.is_ok() {
                self.registry.remove(&loaded);
                tracing::debug!(experiment = loaded.name, "dropped from memory");
            }
            done = done.and(kept);
        }
        done
    }
}
