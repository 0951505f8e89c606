//! One experiment in memory: its record, the fold of its log, and what is out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::fold::{Fold, Page};
use crate::engine::log_regression;
use crate::engine::outstanding::Outstanding;
use crate::engine::page_rules::interleaving_text;
use crate::engine::traffic::Traffic;
use crate::service::reports::estimates::Estimates;
use crate::store::{
    Change, ControlEvent, Event, ExperimentId, ExperimentRecord, LogEntry, Nonce, Snapshot, Store,
    StoreError, in_time,
};
use crate::telemetry::metrics::Metrics;
use dueling_bandits::{InFlight, PolicyRng, Selection};

/// Log entries fetched first while catching up.
const FIRST_PAGE: u32 = 500;
/// Log entries fetched at a time when there are more.
const PAGE: u32 = 20_000;

/// Self-duels on their way into the log: under which nonce, and `(ranker, count)` in ascending
/// order.
pub type Flush = (Nonce, Vec<(u16, u64)>);

/// An experiment that this process serves.
#[derive(Debug)]
pub struct LoadedExperiment {
    /// Its number in the store.
    pub id: ExperimentId,
    /// Its name.
    pub name: String,
    /// What it was created from.
    pub spec: ExperimentSpec,
    record: RwLock<ExperimentRecord>,
    fold: RwLock<Fold>,
    outstanding: Mutex<Outstanding>,
    /// Self-duels handed out and not yet in the log, per ranker.
    self_duels: Vec<AtomicU64>,
    /// A flush of self-duels whose commit is not known to have happened; it is tried again as it
    /// is.
    pending_flush: Mutex<Option<Flush>>,
    catching_up: tokio::sync::Mutex<()>,
    /// High half of this process's nonces: its own duels are settled when their answers are folded.
    process: u64,
    pub(crate) estimates: Estimates,
    /// The position at which it was last found that no winner is certain.
    pub(crate) conclusion_checked_at: AtomicU64,
    snapshot_position: AtomicU64,
    broken: AtomicBool,
    /// Its log goes on with rankers that its spec does not have, or without one that it has; that
    /// is not folded here.
    stale_roster: AtomicBool,
    /// The log that it is the fold of is gone.
    lost: AtomicBool,
    /// Unix milliseconds of about the last request.
    last_used_ms: AtomicI64,
    traffic: Traffic,
    /// Batches whose end was folded and is not known to be in the audit log.
    ended_batches: Mutex<Vec<EndedBatch>>,
}

/// A batch that was closed by a log entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedBatch {
    /// Its number.
    pub batch: u32,
    /// Position of the entry that closed it.
    pub position: u64,
    /// Unix milliseconds at which that was recorded.
    pub at: i64,
}

impl LoadedExperiment {
    /// Bring an experiment into memory: newest readable snapshot, then the log from there. A
    /// snapshot of more than the log has is of a log that was lost; another takes its place.
    pub async fn open(
        store: &dyn Store,
        record: ExperimentRecord,
        process: u64,
        metrics: &Metrics,
        now_ms: i64,
    ) -> Result<Self, ServiceError> {
        let unreadable = |why| ServiceError::Unreadable { name: record.name.clone(), why };
        let spec = ExperimentSpec::read(&record.spec).map_err(unreadable)?;
        let mut fold = Fold::start(&spec, record.seed, record.created_at);
        let mut log_regressed = false;
        if let Some(snapshot) = in_time(store.newest_snapshot(record.id, fold.format())).await? {
            if snapshot.position > record.head {
                // or of entries that came after the record was read
                let head =
                    in_time(store.heads(&[record.id])).await?.first().map_or(0, |head| head.head);
                log_regressed = snapshot.position > head;
                if log_regressed {
                    let sign = "a snapshot is of a longer log than there is";
                    log_regression::report(metrics, &record.name, head, snapshot.position, sign);
                }
            }
            match Fold::restore(&spec, record.seed, &snapshot.state) {
                _ if log_regressed => {}
                Some(restored) if restored.position() == snapshot.position => fold = restored,
                _ => tracing::warn!(
                    experiment = record.name,
                    position = snapshot.position,
                    "snapshot cannot be read; folding the log from the start"
                ),
            }
        }
        if fold.position() < record.pruned_to {
            return Err(unreadable(format!(
                "its log was pruned up to position {}, and there is no snapshot from there on in the layout that this \
                 version reads ({})",
                record.pruned_to,
                fold.format()
            )));
        }
        let loaded = Self {
            id: record.id,
            name: record.name.clone(),
            outstanding: Mutex::new(Outstanding::new(i64::from(spec.duel_ttl_seconds) * 1000)),
            self_duels: spec.rankers.iter().map(|_| AtomicU64::new(0)).collect(),
            pending_flush: Mutex::new(None),
            catching_up: tokio::sync::Mutex::new(()),
            estimates: Estimates::default(),
            conclusion_checked_at: AtomicU64::new(u64::MAX),
            snapshot_position: AtomicU64::new(fold.position()),
            process,
            broken: AtomicBool::new(false),
            stale_roster: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            last_used_ms: AtomicI64::new(i64::MIN),
            traffic: Traffic::new(now_ms, metrics.feedback_delay_seconds.clone()),
            ended_batches: Mutex::default(),
            record: RwLock::new(record),
            fold: RwLock::new(fold),
            spec,
        };
        loaded.catch_up(store).await?;
        if loaded.fold()?.roster_changes() != loaded.spec.roster_changes {
            return Err(loaded.unreadable(&"its log does not say who of its rankers came and went"));
        }
        if log_regressed
            && let Some(snapshot) = loaded.snapshot_if_due(0, loaded.record().updated_at)?
        {
            in_time(store.save_snapshot(&snapshot)).await?;
        }
        Ok(loaded)
    }

    /// The fold as it stands.
    pub fn fold(&self) -> Result<RwLockReadGuard<'_, Fold>, ServiceError> {
        self.fold.read().map_err(|_| self.broke("folding it panicked"))
    }

    /// The position of the newest entry that is folded; 0 when what was folded is no longer known.
    pub(crate) fn position(&self) -> u64 {
        self.fold.read().map_or(0, |fold| fold.position())
    }

    /// The record as it was last read.
    pub fn record(&self) -> ExperimentRecord {
        self.record.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Look at the record without copying it.
    pub fn with_record<T>(&self, look: impl FnOnce(&ExperimentRecord) -> T) -> T {
        look(&self.record.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Take over a newer record.
    pub fn set_record(&self, record: ExperimentRecord) {
        let mut current = self.record.write().unwrap_or_else(PoisonError::into_inner);
        if record.version >= current.version {
            *current = record;
        }
    }

    /// If the event is a change of the record, the record has it now. One that the record has
    /// already is passed over.
    fn apply_record_change(&self, entry: &LogEntry, event: &ControlEvent) {
        let change = match event {
            ControlEvent::Status { status, winner, archived, .. } => Change {
                status: Some(*status),
                winner: Some(*winner),
                archived_at: archived.then_some(entry.recorded_at),
                ..Change::default()
            },
            ControlEvent::Policy { .. } => Change::default(),
            ControlEvent::Interleaving { version, method } => Change {
                interleaving: Some(interleaving_text(*version, method)),
                ..Change::default()
            },
            _ => return,
        };
        let mut record = self.record.write().unwrap_or_else(PoisonError::into_inner);
        if entry.position > record.head {
            let after = change.applied_to(&record, entry.recorded_at);
            *record = ExperimentRecord { head: entry.position, ..after };
        }
    }

    /// Somebody asks for it now.
    pub fn touch(&self, now_ms: i64) {
        // reading costs nothing where many ask at once; writing does
        if self.last_used_ms.load(Ordering::Relaxed) != now_ms {
            self.last_used_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Unix milliseconds of about the last request.
    pub fn last_used_ms(&self) -> i64 {
        self.last_used_ms.load(Ordering::Relaxed)
    }

    /// Bytes that it takes in memory, estimated: a constant, 1 KiB for each ranker (counts over
    /// time), 34 for each ordered pair of rankers, and the clicks that wait.
    pub fn bytes(&self) -> u64 {
        let rankers = self.spec.rankers.len() as u64;
        let open = self.fold.read().map_or(0, |fold| fold.open_pages().bytes() as u64);
        16 * 1024 + 1024 * rankers + 34 * rankers * rankers + open
    }

    /// Whether comparisons of its open batch are out, which dropping it would forget.
    pub fn waits_for_its_batch(&self, now_ms: i64) -> bool {
        let batch = match self.fold() {
            Ok(fold) if fold.policy().batches().is_some() => fold.policy().batch(),
            _ => return false,
        };
        self.lock_outstanding().at(now_ms, batch).total() > 0
    }

    /// Batches whose end is to be noted.
    pub fn ended_batches(&self) -> Vec<EndedBatch> {
        self.ended_batches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The ends of these batches are noted.
    pub fn ends_noted(&self, noted: &[EndedBatch]) {
        let mut ended = self.ended_batches.lock().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|batch| !noted.contains(batch));
    }

    /// Whether clicks wait for their duels to be settled.
    pub fn has_open_pages(&self) -> bool {
        self.fold().is_ok_and(|fold| !fold.open_pages().pages().is_empty())
    }

    /// Duels whose clicks have waited for their time, at most `limit`.
    pub fn pages_to_settle(&self, now_ms: i64, limit: usize) -> Result<Vec<Nonce>, ServiceError> {
        let window = self.spec.pages.settle_after_seconds(self.spec.duel_ttl_seconds);
        let until = now_ms - i64::from(window) * 1000;
        Ok(self.fold()?.open_pages().issued_until(until).take(limit).collect())
    }

    /// Whether there are self-duels that are not known to be in the log.
    pub fn has_self_duels(&self) -> bool {
        self.pending_flush.lock().unwrap_or_else(PoisonError::into_inner).is_some()
            || self.self_duels.iter().any(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Whether the state in memory can no longer be trusted and must be folded anew.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Whether rankers have come or gone in its log that are not in its spec.
    pub(crate) fn has_stale_roster(&self) -> bool {
        self.stale_roster.load(Ordering::Relaxed)
    }

    /// The log in the database goes up to `position` only, and this is the fold of one that went up
    /// to `was_at_least`. Said once; it is folded anew.
    pub(crate) fn report_log_regression(
        &self,
        metrics: &Metrics,
        position: u64,
        was_at_least: u64,
    ) {
        self.broken.store(true, Ordering::Relaxed);
        if !self.lost.swap(true, Ordering::SeqCst) {
            let sign = "a longer log was folded than there is";
            log_regression::report(metrics, &self.name, position, was_at_least, sign);
        }
    }

    /// Whether it was said that the log that it is the fold of is gone.
    pub(crate) fn log_has_regressed(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    fn broke(&self, why: &str) -> ServiceError {
        self.broken.store(true, Ordering::Relaxed);
        ServiceError::Internal(format!(
            "the state of experiment `{}` is lost ({why}); it is folded anew",
            self.name
        ))
    }

    fn unreadable(&self, why: &dyn std::fmt::Display) -> ServiceError {
        self.broken.store(true, Ordering::Relaxed);
        ServiceError::Unreadable { name: self.name.clone(), why: why.to_string() }
    }

    /// Choose a duel and note that it is out. Returns the log position that it was chosen at.
    pub fn select(
        &self,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<(Selection, u64), ServiceError> {
        let fold = self.fold()?;
        let policy = fold.policy();
        let selection = if policy.uses_in_flight() {
            let mut outstanding = self.lock_outstanding();
            let selection = policy.select(outstanding.at(now_ms, policy.batch()), rng);
            outstanding.issue(&selection, now_ms);
            self.count_unanswered(&mut outstanding);
            selection
        } else {
            let selection = policy.select(&InFlight::new(), rng);
            let mut outstanding = self.lock_outstanding();
            outstanding.at(now_ms, policy.batch());
            outstanding.issue(&selection, now_ms);
            self.count_unanswered(&mut outstanding);
            selection
        };
        Ok((selection, fold.position()))
    }

    /// What this process has out now.
    pub fn outstanding<T>(
        &self,
        now_ms: i64,
        look: impl FnOnce(&InFlight) -> T,
    ) -> Result<T, ServiceError> {
        let batch = self.fold()?.policy().batch();
        let mut outstanding = self.lock_outstanding();
        let seen = look(outstanding.at(now_ms, batch));
        self.count_unanswered(&mut outstanding);
        Ok(seen)
    }

    fn count_unanswered(&self, outstanding: &mut Outstanding) {
        for (pair, count) in outstanding.take_unanswered() {
            self.traffic.expired(pair, count.into());
        }
    }

    /// What passes through this process.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn lock_outstanding(&self) -> MutexGuard<'_, Outstanding> {
        // counts of what is out steer, they decide nothing: a panic while they were held does no
        // harm
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A self-duel was handed out.
    pub fn count_self_duel(&self, ranker: usize) {
        self.self_duels[ranker].fetch_add(1, Ordering::Relaxed);
    }

    /// Self-duels to append now, under which nonce; none when there are none. What is returned
    /// stays unsettled until [`LoadedExperiment::self_duels_settled`].
    pub fn self_duels_to_flush(&self, fresh_nonce: impl FnOnce() -> Nonce) -> Option<Flush> {
        let mut unsettled = self.pending_flush.lock().unwrap_or_else(PoisonError::into_inner);
        if unsettled.is_none() {
            let counts: Vec<_> = (0u16..)
                .zip(&self.self_duels)
                .map(|(ranker, count)| (ranker, count.swap(0, Ordering::Relaxed)))
                .filter(|&(_, count)| count > 0)
                .collect();
            if !counts.is_empty() {
                *unsettled = Some((fresh_nonce(), counts));
            }
        }
        unsettled.clone()
    }

    /// The flush with this nonce is in the log.
    pub fn self_duels_settled(&self, nonce: Nonce) {
        let mut unsettled = self.pending_flush.lock().unwrap_or_else(PoisonError::into_inner);
        if unsettled.as_ref().is_some_and(|(pending, _)| *pending == nonce) {
            *unsettled = None;
        }
    }

    /// Fold entries that follow on what is folded; entries that are folded already are passed over.
    /// Returns whether nothing is missing in between.
    pub fn absorb(&self, entries: &[LogEntry]) -> Result<bool, ServiceError> {
        // a policy with a defect must cost its own experiment only, not the task that writes for
        // all; the panic poisons the lock on its way, so that nothing is selected from what it
        // leaves behind
        catch_unwind(AssertUnwindSafe(|| {
            let mut fold = self.fold.write().map_err(|_| self.broke("folding it panicked"))?;
            fold.apply_page(|page| self.absorb_into(page, entries))
        }))
        .unwrap_or_else(|_| Err(self.broke("folding it panicked")))
    }

    fn absorb_into(&self, page: &mut Page<'_>, entries: &[LogEntry]) -> Result<bool, ServiceError> {
        for entry in entries {
            if self.stale_roster.load(Ordering::Relaxed) {
                return Ok(true);
            }
            if entry.position <= page.position() {
                continue;
            }
            if entry.position > page.position() + 1 {
                return Ok(false);
            }
            // who still holds this one goes on choosing among the rankers that it knows; the next
            // request has it anew
            if changes_roster(&entry.event)
                && page.roster_changes_seen() == self.spec.roster_changes.changes()
            {
                self.stale_roster.store(true, Ordering::Relaxed);
                self.broken.store(true, Ordering::Relaxed);
                return Ok(true);
            }
            let batch = page.batch();
            let answered = page.answer(entry).map_err(|error| self.unreadable(&error))?;
            if let Some(batch) = batch
                && page.batch() != Some(batch)
            {
                let ended = EndedBatch { batch, position: entry.position, at: entry.recorded_at };
                self.ended_batches.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
            }
            if let Event::Control(event) = &entry.event {
                self.apply_record_change(entry, event);
            }
            // a change that its spec does not have yet: under the new policy it is folded anew
            if page.policy_changes_seen() > self.spec.former_policies.len() {
                self.broken.store(true, Ordering::Relaxed);
            }
            // an answer carries the nonce of its duel
            if let Some(duel) = answered
                && (entry.nonce >> 64) as u64 == self.process
            {
                self.lock_outstanding().settle(
                    duel.first.into(),
                    duel.second.into(),
                    duel.batch,
                    duel.issued_at,
                );
                if duel.first != duel.second {
                    self.traffic.answered(
                        (duel.first, duel.second),
                        duel.issued_at,
                        entry.recorded_at,
                    );
                }
            }
        }
        Ok(true)
    }

    /// Fold what the log has beyond what is folded.
    pub async fn catch_up(&self, store: &dyn Store) -> Result<(), ServiceError> {
        let _one_at_a_time = self.catching_up.lock().await;
        let after = self.fold()?.position();
        // mostly there is little to catch up with
        let mut page = self.readable(in_time(store.read(self.id, after, FIRST_PAGE)).await)?;
        let mut full = page.len() == FIRST_PAGE as usize;
        while let (true, Some(last)) = (full, page.last()) {
            // the store reads the next page while this one is folded
            let next = in_time(store.read(self.id, last.position, PAGE));
            let (next, folded) = tokio::join!(next, async { self.absorb_all(&page) });
            folded?;
            page = self.readable(next)?;
            full = page.len() == PAGE as usize && !self.has_stale_roster();
        }
        self.absorb_all(&page)
    }

    /// A page of the log; one that this version cannot read is the experiment's trouble and not the
    /// store's.
    fn readable(
        &self,
        page: Result<Vec<LogEntry>, StoreError>,
    ) -> Result<Vec<LogEntry>, ServiceError> {
        page.map_err(|error| match error {
            StoreError::Corrupt(_) => self.unreadable(&error),
            error => error.into(),
        })
    }

    fn absorb_all(&self, page: &[LogEntry]) -> Result<(), ServiceError> {
        if self.absorb(page)? {
            return Ok(());
        }
        let position = self.fold()?.position();
        Err(self.unreadable(&format_args!("its log has a gap after position {position}")))
    }

    /// A snapshot, if `every` entries or more were folded since the last one.
    pub fn snapshot_if_due(
        &self,
        every: u64,
        now_ms: i64,
    ) -> Result<Option<Snapshot>, ServiceError> {
        let fold = self.fold()?;
        let position = fold.position();
        if position < self.snapshot_position.load(Ordering::Relaxed) + every {
            return Ok(None);
        }
        Ok(Some(Snapshot {
            experiment: self.id,
            position,
            format: fold.format(),
            state: fold.save(),
            created_at: now_ms,
        }))
    }

    /// A snapshot at this position is kept.
    pub fn snapshot_kept(&self, position: u64) {
        self.snapshot_position.fetch_max(position, Ordering::Relaxed);
    }
}

fn changes_roster(event: &Event) -> bool {
    matches!(
        event,
        Event::Control(ControlEvent::RankerEnlisted { .. } | ControlEvent::RankerRetired { .. })
    )
}
