//! The loaded experiment, and what can be read of it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::mpsc;

use super::issued::Issued;
use crate::condition::{Condition, ConditionCell};
use crate::error::EngineError;
use crate::experiment_spec::ExperimentSpec;
use crate::extensions::Extensions;
use crate::fold::Fold;
use crate::log_regression;
use crate::metrics::Metrics;
use crate::traffic::Traffic;
use crate::unlogged::Unlogged;
use rankduel_store::{ExperimentId, ExperimentRecord, Nonce, Snapshot};

/// Entries folded between two snapshots of an experiment. In a database they take about as many
/// bytes as the largest snapshot.
const SNAPSHOT_ENTRIES: u64 = 10_000;

/// About the bytes of a loaded experiment beside its fold.
const LOADED_BYTES: u64 = 16 * 1024;

/// An experiment that this process serves.
#[derive(Debug)]
pub struct LoadedExperiment {
    /// Its number in the store.
    pub id: ExperimentId,
    /// Its name.
    pub name: String,
    /// Its spec when it was loaded. A change of it loads the experiment again.
    pub spec: ExperimentSpec,
    /// How many rankers the experiment was created with.
    pub initial_rankers: usize,
    /// The version of the record that the spec is from.
    pub(super) version: u64,
    pub(super) record: RwLock<ExperimentRecord>,
    pub(super) fold: RwLock<Fold>,
    pub(crate) issued: Arc<Issued>,
    pub(crate) unlogged: Unlogged,
    /// Shared by appends from this process. An event that holds for one position of the log alone
    /// takes it for itself, and calls [`Writer::append_alone`](crate::writer::Writer::append_alone).
    pub appending: tokio::sync::RwLock<()>,
    /// Held while the log is read and folded.
    pub(super) catching_up: Arc<tokio::sync::Mutex<()>>,
    /// High half of the nonces of this process. It tells which answers belong to duels that this
    /// process issued.
    pub(super) process: u64,
    pub(super) condition: ConditionCell,
    pub(super) extensions: Extensions,
    /// Takes its id when it may conclude.
    pub(super) due: mpsc::UnboundedSender<ExperimentId>,
    /// Whether it was sent to `due`: once is enough, the maintenance rounds do the rest.
    pub(super) was_due: AtomicBool,
    /// The winner of a doubted verdict and the rival whose duels would lessen the doubt.
    pub(super) doubted: Mutex<Option<(usize, usize)>>,
    /// Position of the newest snapshot in the store; 0 without one.
    pub(super) snapshot_at: AtomicU64,
    /// Unix milliseconds of about the last request.
    pub(super) last_used_ms: AtomicI64,
}

/// The identity of a process.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// High half of the nonces that it makes.
    pub id: u64,
    /// Unix milliseconds at which it started.
    pub since_ms: i64,
}

impl LoadedExperiment {
    /// The current fold.
    pub fn fold(&self) -> Result<RwLockReadGuard<'_, Fold>, EngineError> {
        self.fold.read().map_err(|_| self.panicked())
    }

    /// The position of the newest folded entry; 0 if a panic destroyed the fold.
    pub(crate) fn position(&self) -> u64 {
        self.fold.read().map_or(0, |fold| fold.state().position)
    }

    /// A copy of the newest known record.
    pub fn record(&self) -> ExperimentRecord {
        self.with_record(ExperimentRecord::clone)
    }

    /// Read the newest known record without copying it.
    pub fn with_record<T>(&self, read: impl FnOnce(&ExperimentRecord) -> T) -> T {
        read(&self.record.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The seed of the names that documents have on all pages; `None` if each page has its own.
    pub fn document_names(&self) -> Option<u64> {
        self.spec.decide_by.is_some().then(|| self.with_record(|record| record.seed))
    }

    /// Whether the first page of a unit decides which rankers its other pages show.
    pub fn needs_unit(&self) -> bool {
        self.spec.decide_by.is_some() && self.initial_rankers > 2
    }

    /// Replace the record, unless a newer one is known. The answer stays, which changes without the
    /// version: the given record may have been read before the newest answer was stored.
    pub(crate) fn set_record(&self, record: ExperimentRecord) {
        let mut current = self.record.write().unwrap_or_else(PoisonError::into_inner);
        if record.version >= current.version {
            let answer = current.answer.take();
            *current = ExperimentRecord { answer, ..record };
        }
    }

    /// The store has this answer.
    pub fn set_answer(&self, answer: String) {
        self.record.write().unwrap_or_else(PoisonError::into_inner).answer = Some(answer);
    }

    /// Maintain it soon.
    pub fn wake(&self) {
        // fails only if nothing maintains experiments here
        let _ = self.due.send(self.id);
    }

    /// Note a request for the experiment.
    pub fn touch(&self, now_ms: i64) {
        // many threads can read one value cheaply, but not write it
        if self.last_used_ms.load(Ordering::Relaxed) != now_ms {
            self.last_used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Unix milliseconds of about the last request.
    pub fn last_used_ms(&self) -> i64 {
        self.last_used_ms.load(Ordering::Relaxed)
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> u64 {
        LOADED_BYTES + self.fold.read().map_or(0, |fold| fold.bytes() as u64)
    }

    /// Whether eviction would lose or delay something: comparisons of the open batch that are in
    /// flight, clicks that are not settled, or answers or values that wait until their cohort is
    /// complete.
    pub fn has_open_work(&self, now_ms: i64) -> bool {
        let Ok(fold) = self.fold() else { return false };
        let policy = fold.run().policy();
        let awaits_batch = policy.batches().is_some()
            && self.open_duels().in_flight_at(now_ms, policy.batch()).total() > 0;
        awaits_batch
            || !fold.state().open_pages.pages().is_empty()
            || fold.state().guardrails.as_deref().is_some_and(|it| it.due(i64::MAX).is_some())
            || fold.oldest_cohort_end().is_some()
    }

    /// Duels whose time to collect clicks is over, at most `limit`.
    pub fn pages_to_settle(&self, now_ms: i64, limit: usize) -> Result<Vec<Nonce>, EngineError> {
        let fold = self.fold()?;
        // a shorter window must not cut off clicks on pages that were shown before
        let window =
            u32::try_from(fold.run().cohorts().longest_window_ms() / 1000).unwrap_or(u32::MAX);
        let until = now_ms - i64::from(self.spec.settle_within(window)) * 1000;
        Ok(fold.state().open_pages.issued_until(until).take(limit).collect())
    }

    /// Traffic of this process.
    pub fn traffic(&self) -> &Traffic {
        &self.issued.traffic
    }

    /// Values that other layers keep with the experiment.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Whether the state in memory can be used.
    pub fn condition(&self) -> Condition {
        self.condition.get()
    }

    /// Whether the experiment must be loaded again.
    pub fn is_broken(&self) -> bool {
        self.condition() != Condition::Serving
    }

    /// The log in the database ends at `position`, although the log that was folded here had
    /// reached `was_at_least`. Reported once; the experiment is loaded again.
    pub(crate) fn report_log_regression(
        &self,
        metrics: &Metrics,
        position: u64,
        was_at_least: u64,
    ) {
        if self.condition.worsen_to(Condition::LogRegressed) {
            let sign = "the log is shorter than the one that was folded";
            log_regression::report(metrics, &self.name, position, was_at_least, sign);
        }
    }

    /// The database has no such experiment any more. If one has its name, it is another one, which
    /// is loaded by the next request. Reported once.
    pub(crate) fn report_gone(&self, metrics: &Metrics) {
        if self.condition.worsen_to(Condition::LogRegressed) {
            let sign = "the experiment is gone";
            log_regression::report(metrics, &self.name, 0, self.position(), sign);
        }
    }

    pub(super) fn panicked(&self) -> EngineError {
        self.condition.worsen_to(Condition::Broken);
        EngineError::Internal(format!(
            "the state of experiment `{}` is lost because folding it panicked; it is folded again",
            self.name
        ))
    }

    pub(super) fn unreadable(&self, why: &dyn std::fmt::Display) -> EngineError {
        self.condition.worsen_to(Condition::Broken);
        EngineError::Unreadable { name: self.name.clone(), why: why.to_string() }
    }

    /// Whether enough of the log was folded since the newest snapshot to save another one.
    pub fn snapshot_is_due(&self) -> bool {
        self.position() >= self.snapshot_at.load(Ordering::Relaxed) + SNAPSHOT_ENTRIES
    }

    /// Whether the newest snapshot lacks entries of the log.
    pub fn snapshot_is_behind(&self) -> bool {
        self.position() > self.snapshot_at.load(Ordering::Relaxed)
    }

    /// A snapshot of the current state.
    pub fn snapshot(&self, now_ms: i64) -> Result<Snapshot, EngineError> {
        let fold = self.fold()?;
        Ok(Snapshot {
            experiment: self.id,
            position: fold.state().position,
            format: fold.format(),
            state: fold.save(),
            created_at: now_ms,
        })
    }

    /// The store has this snapshot.
    pub fn snapshot_saved(&self, snapshot: &Snapshot) {
        self.snapshot_at.fetch_max(snapshot.position, Ordering::Relaxed);
    }
}
