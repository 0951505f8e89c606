//! How much of a log may go: what is folded into a snapshot, and whose duels nobody can answer any
//! more.

use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::fold::Fold;
use crate::events::Status;
use crate::store::{ExperimentRecord, Snapshot, Store};

/// What servers' clocks may differ by, unix milliseconds: a duel counts as expired only this much
/// later.
const CLOCKS_DIFFER_MS: i64 = 3_600_000;
/// Entries read at a time.
const PAGE: u32 = 10_000;

/// What pruning would forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruning {
    /// Log entries up to this position go.
    pub to: u64,
    /// How many of them are still there.
    pub entries: u64,
    /// Layout of the snapshot that takes their place.
    pub format: u32,
}

/// Fold the whole log of a concluded or archived experiment, keep the state as a snapshot, and say
/// how much of the log that snapshot can replace. Nothing is forgotten here. The error says why
/// nothing may be.
///
/// An outcome counts once because its nonce is in the log. Without the entry a repeat is refused
/// for another reason: its duel has expired, which its token says itself. So only entries go that
/// were recorded longer ago than a duel lives.
pub async fn prepare(store: &dyn Store, name: &str, now_ms: i64) -> Result<Pruning, anyhow::Error> {
    let record = store
        .experiment(name)
        .await?
        .ok_or_else(|| anyhow::anyhow!("there is no experiment `{name}`"))?;
    anyhow::ensure!(
        record.status == Status::Concluded || record.archived_at.is_some(),
        "experiment `{name}` is not concluded: conclude it first, so that its log is not needed to learn from"
    );
    let spec =
        ExperimentSpec::read(&record.spec).map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
    let fold = folded(store, &record, &spec).await?;
    let expired_before = now_ms - i64::from(spec.duel_ttl_seconds) * 1000 - CLOCKS_DIFFER_MS;
    let (to, entries) = expired(store, &record, expired_before).await?;
    anyhow::ensure!(
        entries > 0,
        "nothing of the log of experiment `{name}` can go yet: its duels loaded {} s, and every entry is younger than \
         that and an hour",
        spec.duel_ttl_seconds
    );
    // the end of the log, so that nothing in between is lost with the snapshot before it
    store
        .save_snapshot(&Snapshot {
            experiment: record.id,
            position: fold.position(),
            format: fold.format(),
            state: fold.save(),
            created_at: now_ms,
        })
        .await?;
    Ok(Pruning { to, entries, format: fold.format() })
}

/// The state at the end of the log: from its first entry, or from the snapshot that took the place
/// of what was pruned.
async fn folded(
    store: &dyn Store,
    record: &ExperimentRecord,
    spec: &ExperimentSpec,
) -> Result<Fold, anyhow::Error> {
    let mut fold = Fold::start(spec, record.seed, record.created_at);
    if record.pruned_to > 0 {
        let snapshot = store.newest_snapshot(record.id, fold.format()).await?;
        fold = snapshot
            .and_then(|snapshot| Fold::restore(spec, record.seed, &snapshot.state))
            .filter(|fold| fold.position() >= record.pruned_to)
            .ok_or_else(|| {
                anyhow::anyhow!(
                    "the snapshot that the pruned log starts from cannot be read by this version"
                )
            })?;
    }
    while fold.position() < record.head {
        let page = store.read(record.id, fold.position(), PAGE).await?;
        anyhow::ensure!(
            !page.is_empty(),
            "the log ends at position {} and should end at {}",
            fold.position(),
            record.head
        );
        fold.apply_page(|folding| page.iter().try_for_each(|entry| folding.apply(entry)))?;
    }
    Ok(fold)
}

/// The longest beginning of the log that was recorded before that time: its last position, and how
/// many entries it has.
async fn expired(
    store: &dyn Store,
    record: &ExperimentRecord,
    before_ms: i64,
) -> Result<(u64, u64), anyhow::Error> {
    let (mut to, mut entries) = (record.pruned_to, 0);
    let mut after = 0;
    loop {
        let page = store.read(record.id, after, PAGE).await?;
        if page.is_empty() {
            return Ok((to, entries));
        }
        for entry in &page {
            if entry.recorded_at >= before_ms {
                return Ok((to, entries));
            }
            entries += 1;
            to = to.max(entry.position);
            after = entry.position;
        }
    }
}
