//! Pruning: which log entries a snapshot can replace. Those of duels that have expired.

use crate::service::transfer::{CHUNK, FoldedLog};
use rankduel_store::events::Status;
use rankduel_store::{ExperimentRecord, Snapshot, Store};

/// Margin for differences between the clocks of servers, in milliseconds: a duel counts as expired
/// only this much later.
const CLOCKS_DIFFER_MS: i64 = 3_600_000;
/// The entries that pruning would delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruning {
    /// Position of the last log entry to delete.
    pub to: u64,
    pub entries: u64,
    /// Layout of the snapshot that replaces them.
    pub format: u32,
}

/// Fold the whole log of a concluded or archived experiment, save the state as a snapshot, and
/// return which part of the log the snapshot can replace. Deletes nothing. The error says why
/// nothing can be pruned.
///
/// An outcome counts once because its nonce is in the log. Once the entry is deleted, a repeat is
/// refused because its duel has expired, which its token shows. So only entries that are older than
/// the time to live of a duel can be deleted.
pub async fn prepare(store: &dyn Store, name: &str, now_ms: i64) -> Result<Pruning, anyhow::Error> {
    let log = FoldedLog::open(store, name).await?;
    let (record, spec) = (log.record.clone(), log.spec.clone());
    anyhow::ensure!(
        record.status == Status::Concluded || record.archived_at.is_some(),
        "experiment `{name}` is not concluded: a running experiment needs its log; conclude it first"
    );
    anyhow::ensure!(
        record.pruned_to < record.head,
        "the log of experiment `{name}` was pruned up to position {}: nothing of it is left",
        record.pruned_to
    );
    let fold = log.fold(store, |_, _| Ok(())).await?;
    let expired_before = now_ms - i64::from(spec.duel_ttl_seconds) * 1000 - CLOCKS_DIFFER_MS;
    let (to, entries) = expired(store, &record, expired_before).await?;
    anyhow::ensure!(
        entries > 0,
        "nothing of the log of experiment `{name}` can be pruned yet: its duels live {} s, and every entry is younger \
         than that plus an hour",
        spec.duel_ttl_seconds
    );
    // a snapshot of the whole log: saving it deletes older snapshots
    store
        .save_snapshot(&Snapshot {
            experiment: record.id,
            position: fold.state().position,
            format: fold.format(),
            state: fold.save(),
            created_at: now_ms,
        })
        .await?;
    Ok(Pruning { to, entries, format: fold.format() })
}

/// The longest beginning of the log that was recorded before `before_ms`: its last position, and
/// its number of entries.
async fn expired(
    store: &dyn Store,
    record: &ExperimentRecord,
    before_ms: i64,
) -> Result<(u64, u64), anyhow::Error> {
    let (mut to, mut entries) = (record.pruned_to, 0);
    let mut after = 0;
    loop {
        let chunk = store.read(record.id, after, CHUNK).await?;
        if chunk.is_empty() {
            return Ok((to, entries));
        }
        for entry in &chunk {
            if entry.recorded_at >= before_ms {
                return Ok((to, entries));
            }
            entries += 1;
            to = to.max(entry.position);
            after = entry.position;
        }
    }
}
