//! How a loaded experiment keeps up with its log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::LoadedExperiment;
use crate::condition::Condition;
use crate::error::EngineError;
use crate::experiment_spec::Patch;
use crate::fold::{Chunk, Fold};
use crate::lifecycle::Lifecycle;
use crate::tokens::duel_token::DuelToken;
use rankduel_store::events::{ControlEvent, Event, OutcomeEvent};
use rankduel_store::{ExperimentRecord, LogEntry, Store, StoreError, in_time};

/// Entries of the first chunk when catching up.
const FIRST_CHUNK: u32 = 500;
/// Entries of each further chunk.
const CHUNK: u32 = 20_000;
/// From this many entries or rows of results on, a chunk is folded on a blocking thread: it would
/// hold up the requests that share an async worker with it.
const BLOCKING_ROWS: usize = 2_000;

impl LoadedExperiment {
    /// Fold the entries of the log that are not folded yet.
    pub async fn catch_up(self: &Arc<Self>, store: &dyn Store) -> Result<(), EngineError> {
        let turn = Arc::clone(&self.catching_up).lock_owned().await;
        let after = self.fold()?.state().position;
        self.fold_after(store, after, turn).await.map(drop)
    }

    /// Fold the log to its end, and only then take this record, which was read before: whoever
    /// reads there that the experiment is concluded finds in its verdict by whom. The record is
    /// durable, and is taken also if folding fails.
    pub async fn catch_up_with(
        self: &Arc<Self>,
        store: &dyn Store,
        record: ExperimentRecord,
    ) -> Result<(), EngineError> {
        let folded = self.catch_up(store).await;
        self.set_record(record);
        folded
    }

    /// Read the log after position `after`, and fold the entries that are not folded yet. Returns
    /// the position of the last entry that was read, `after` if there is none.
    pub(super) async fn fold_after(
        self: &Arc<Self>,
        store: &dyn Store,
        after: u64,
        mut turn: OwnedMutexGuard<()>,
    ) -> Result<u64, EngineError> {
        let mut end = after;
        // usually only a few entries are missing
        let mut chunk = self.readable(in_time(store.read(self.id, after, FIRST_CHUNK)).await)?;
        let mut full = chunk.len() == FIRST_CHUNK as usize;
        loop {
            end = chunk.last().map_or(end, |entry| entry.position);
            let loaded = Arc::clone(self);
            // the turn goes along: if the caller gives up, the next one waits for this fold
            let rows = self.rows_of(&chunk);
            let fold = fold_off_worker(rows, move || loaded.absorb_all(&chunk).map(|()| turn));
            if !full {
                return fold.await?.map(|_| end);
            }
            // the store reads the next chunk meanwhile
            let (next, folded) = tokio::join!(in_time(store.read(self.id, end, CHUNK)), fold);
            turn = folded??;
            chunk = self.readable(next)?;
            full = chunk.len() == CHUNK as usize && self.condition().can_fold();
        }
    }

    /// [`LoadedExperiment::absorb`], with large chunks on a blocking thread.
    pub(crate) async fn absorb_off_worker(
        self: &Arc<Self>,
        entries: Vec<LogEntry>,
    ) -> Result<bool, EngineError> {
        let (loaded, rows) = (Arc::clone(self), self.rows_of(&entries));
        fold_off_worker(rows, move || loaded.absorb(&entries)).await?
    }

    /// How much there is to fold. The answer that ends a batch counts a row for each pair: the
    /// policy looks at all of them then.
    fn rows_of(&self, entries: &[LogEntry]) -> usize {
        let rows = entries.iter().map(rows).sum();
        let batch =
            self.fold().ok().and_then(|fold| Some(fold.run().policy().batches()?.progress()));
        match batch {
            Some(batch) if batch.needed <= batch.answered + entries.len() as u64 => {
                rows + batch.pairs
            }
            _ => rows,
        }
    }

    /// Fold the entries that follow the last folded one; earlier entries are skipped. Returns
    /// `false` if entries are missing in between.
    pub fn absorb(&self, entries: &[LogEntry]) -> Result<bool, EngineError> {
        // a defect of a policy must not stop the writer, which serves all experiments; the panic
        // poisons the lock, so that nothing is selected from the state it leaves behind
        catch_unwind(AssertUnwindSafe(|| {
            let mut fold = self.fold.write().map_err(|_| self.panicked())?;
            let absorbed = fold.apply_chunk(|chunk| self.absorb_into(chunk, entries));
            self.signal_if_due(&fold);
            absorbed
        }))
        .unwrap_or_else(|_| Err(self.panicked()))
    }

    fn absorb_into(
        &self,
        chunk: &mut Chunk<'_>,
        entries: &[LogEntry],
    ) -> Result<bool, EngineError> {
        for entry in entries {
            if !self.condition().can_fold() {
                return Ok(true);
            }
            if entry.position <= chunk.position() {
                continue;
            }
            if entry.position > chunk.position() + 1 {
                return Ok(false);
            }
            let changed = match &entry.event {
                Event::Control(ControlEvent::Changed { patch, .. }) => Some(patch),
                _ => None,
            };
            // requests that still hold this experiment go on with the spec that it knows; the next
            // request loads it again
            if let Some(patch) = changed
                && chunk.version() >= self.version
                && Patch::read(patch).is_ok_and(|patch| patch.changes_spec())
            {
                self.condition.worsen_to(Condition::Stale);
                return Ok(true);
            }
            let answered = chunk.apply(entry).map_err(|error| self.unreadable(&error))?;
            if changed.is_some() {
                self.note_change(entry, chunk);
            }
            if let Some(duel) = answered {
                self.note_answer(entry, duel);
            }
        }
        Ok(true)
    }

    /// If the fold has reached what concludes the experiment, say so, once.
    fn signal_if_due(&self, fold: &Fold) {
        let Some(at) = self.spec.conclude_at else { return };
        let reached = fold.settled_verdict(&at).is_some()
            || at.max_duels.is_some_and(|most| fold.state().counts.answered_duels() >= most);
        if reached
            && fold.state().concluded_by_itself.is_none()
            && !self.was_due.swap(true, Ordering::Relaxed)
        {
            // fails only if nothing concludes experiments here
            let _ = self.due.send(self.id);
        }
    }

    /// Count an answer of a duel that this process issued. An answer has the nonce of its duel.
    fn note_answer(&self, entry: &LogEntry, duel: OutcomeEvent) {
        if (entry.nonce >> 64) as u64 != self.process || !self.issued.counts(entry.position) {
            return;
        }
        let OutcomeEvent { first, second, first_left, batch, issued_at, .. } = duel;
        if first != second {
            let shown = if first_left { (first, second) } else { (second, first) };
            self.open_duels().answered(shown, batch, issued_at);
            self.issued.traffic.answered(issued_at, entry.recorded_at);
        }
    }

    /// Count the first page of a duel that this process issued.
    pub fn note_page(&self, duel: &DuelToken) {
        self.note_issued(duel);
        let DuelToken { first, second, first_left, issued_at, nonce, .. } = *duel;
        if (nonce >> 64) as u64 == self.process && first != second {
            let shown = if first_left { (first, second) } else { (second, first) };
            self.open_duels().page_made(shown, issued_at);
        }
    }

    /// The entry changed the record, which may be newer already.
    fn note_change(&self, entry: &LogEntry, chunk: &Chunk<'_>) {
        let Lifecycle { status, winner, archived_at } = chunk.lifecycle();
        let mut record = self.record.write().unwrap_or_else(PoisonError::into_inner);
        if chunk.version() > record.version {
            let (version, head, updated_at) = (chunk.version(), entry.position, entry.recorded_at);
            let before = record.clone();
            *record = ExperimentRecord {
                status,
                winner,
                archived_at,
                version,
                head,
                updated_at,
                ..before
            };
        }
    }

    fn absorb_all(&self, chunk: &[LogEntry]) -> Result<(), EngineError> {
        if self.absorb(chunk)? {
            return Ok(());
        }
        let position = self.fold()?.state().position;
        Err(self.unreadable(&format_args!("its log has a gap after position {position}")))
    }

    /// A chunk of the log. One that this version cannot read is a fault of the experiment, not of
    /// the store.
    fn readable(
        &self,
        chunk: Result<Vec<LogEntry>, StoreError>,
    ) -> Result<Vec<LogEntry>, EngineError> {
        chunk.map_err(|error| match error {
            StoreError::Corrupt(_) => self.unreadable(&error),
            error => error.into(),
        })
    }
}

/// Fold a small chunk at once, a large one on a blocking thread.
pub(super) async fn fold_off_worker<T: Send + 'static>(
    rows: usize,
    fold: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    if rows < BLOCKING_ROWS {
        return Ok(fold());
    }
    tokio::task::spawn_blocking(fold).await.map_err(|error| {
        EngineError::Internal(format!("a chunk of the log was not folded: {error}"))
    })
}

/// How much there is to fold: rows of results, or one for any other entry.
fn rows(entry: &LogEntry) -> usize {
    match &entry.event {
        Event::Control(ControlEvent::BatchResults { results, .. }) => results.len().max(1),
        Event::Control(ControlEvent::Values { pages }) => pages.len().max(1),
        _ => 1,
    }
}
