//! Folding the log of an experiment from its beginning, for a report.

use super::pool::ReportPool;
use crate::service::error::ServiceError;
use crate::service::threads::{IsAwaited, blocking};
use rankduel_engine::fold::{Fold, FoldError};
use rankduel_store::events::OutcomeEvent;
use rankduel_store::{ExperimentLog, ExperimentRecord, LogEntry};

/// Longest log that a request can fold.
pub(super) const REQUEST_ENTRIES_MAX: u64 = 200_000;
/// Most comparisons of a log that a request can fold: one entry with the results of a batch can
/// have many, and most policies observe each.
pub(super) const REQUEST_COMPARISONS_MAX: u64 = 2_000_000;
/// Entries of one read. Many would keep a processor busy at the priority of the threads that serve
/// requests: with the thread of SQLite, or the process of PostgreSQL. Few would not be read in
/// bulk.
const READ_ENTRIES: u32 = 250;
/// Reads whose entries are folded as one chunk. The end of a chunk takes longer with more rankers.
const CHUNK_READS: usize = 80;

/// Where a log is read, and where it is folded.
#[derive(Clone, Copy)]
pub(super) struct Folding<'a> {
    pub store: &'a dyn ExperimentLog,
    /// The threads that fold; without them, those for blocking work do.
    pub pool: Option<&'a ReportPool>,
}

impl Folding<'_> {
    /// Fold the log up to the position `head` into `fold`. For each duel that an entry answered,
    /// call `see`, which collects into `seen`.
    pub async fn run<S: Send + 'static>(
        self,
        record: &ExperimentRecord,
        head: u64,
        (mut fold, mut seen): (Fold, S),
        see: fn(&mut S, &OutcomeEvent, &LogEntry),
    ) -> Result<(Fold, S), ServiceError> {
        while fold.position() < head {
            let starts = (fold.position()..head).step_by(READ_ENTRIES as usize).take(CHUNK_READS);
            let mut entries = Vec::new();
            for start in starts {
                let read = self.store.read(record.id, start, READ_ENTRIES);
                entries.extend(match self.pool {
                    Some(pool) => pool.read_log(read).await?,
                    None => read.await?,
                });
            }
            let before = fold.position();
            let fold_chunk = move |is_awaited: IsAwaited<'_>| {
                fold_chunk((fold, seen), entries, head, see, is_awaited)
            };
            (fold, seen) = self.in_background(fold_chunk).await??;
            if fold.position() == before {
                return Err(ServiceError::internal(format!(
                    "the log of experiment `{}` ends at position {before} instead of {head}",
                    record.name
                )));
            }
        }
        Ok((fold, seen))
    }

    /// Run `work` on the threads that fold. It asks from time to time whether its result is still
    /// awaited; without a pool, it always is.
    pub async fn in_background<T: Send + 'static>(
        self,
        work: impl FnOnce(IsAwaited<'_>) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        match self.pool {
            Some(pool) => pool.threads.run_awaited(work).await,
            None => blocking(move || work(&|| true)).await,
        }
    }
}

fn fold_chunk<S>(
    (mut fold, mut seen): (Fold, S),
    entries: Vec<LogEntry>,
    head: u64,
    see: fn(&mut S, &OutcomeEvent, &LogEntry),
    is_awaited: IsAwaited<'_>,
) -> Result<(Fold, S), ServiceError> {
    fold.apply_chunk(|chunk| {
        let to_fold = entries.iter().take_while(|entry| entry.position <= head);
        // The next chunk is not started for a caller that has gone.
        for entry in to_fold.take_while(|_| is_awaited()) {
            if let Some(answered) = chunk.apply(entry)? {
                see(&mut seen, &answered, entry);
            }
        }
        Ok(())
    })
    .map_err(|error: FoldError| {
        ServiceError::CannotReplay(format!("the log cannot be folded: {error}"))
    })?;
    Ok((fold, seen))
}
