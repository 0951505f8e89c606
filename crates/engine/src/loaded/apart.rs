//! Folding long entries apart from the state that requests read.
//!
//! The results of a batch of a thousand rankers are half a million rows. Folding them takes most of
//! a second, and every duel of the experiment would wait for it. They are folded into a copy, which
//! then takes the place of the state. Until then duels are selected from the old state, as on a
//! server that lags.

use super::{EndedBatch, LoadedExperiment};
use crate::error::EngineError;
use crate::fold::Fold;
use rankduel_store::LogEntry;
use rankduel_store::events::{ControlEvent, Event};

/// From this many rows on, an entry is folded apart.
const LONG_ROWS: usize = 1_000;

/// How much there is to fold: rows of results, or one for any other entry.
pub(super) fn rows(entry: &LogEntry) -> usize {
    match &entry.event {
        Event::Control(ControlEvent::BatchResults { results, .. }) => results.len().max(1),
        _ => 1,
    }
}

/// Whether an entry is folded apart.
pub(super) fn is_long(entry: &LogEntry) -> bool {
    rows(entry) >= LONG_ROWS
}

impl LoadedExperiment {
    /// Fold an entry apart if it is the next one. Returns `false` if nothing has changed: it is not
    /// the next one, or it or the state cannot be read.
    pub(super) fn fold_apart(&self, entry: &LogEntry) -> Result<bool, EngineError> {
        let is_next = |fold: &Fold| fold.position() + 1 == entry.position;
        let copy = {
            let fold = self.fold()?;
            match is_next(&fold) && self.condition().can_fold() {
                true => fold.copy(),
                false => return Ok(false),
            }
        };
        let seed = self.with_record(|record| record.seed);
        let Some(mut next) = Fold::restore(&self.spec, seed, &copy.into_bytes()) else {
            return Ok(false);
        };
        let batch = next.policy().batch();
        if next.apply(entry).is_err() {
            return Ok(false);
        }
        let has_ended = batch.filter(|_| next.policy().batch() != batch);
        let former = {
            let mut fold = self.fold.write().map_err(|_| self.panicked())?;
            if !is_next(&fold) {
                return Ok(false);
            }
            let former = std::mem::replace(&mut *fold, next);
            if let Some(batch) = has_ended {
                self.note_end(EndedBatch {
                    batch,
                    position: entry.position,
                    at: entry.recorded_at,
                });
            }
            self.signal_if_due(&fold);
            former
        };
        // it has megabytes to free, after the lock
        drop(former);
        Ok(true)
    }
}
