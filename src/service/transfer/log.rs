//! Reading and folding the whole log of an experiment, for a file.

use super::format::CHUNK;
use rankduel_engine::consistency::beyond_head;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::events::OutcomeEvent;
use rankduel_store::{ExperimentRecord, LogEntry, Snapshot, Store, StoreError};

/// Call `with` for each entry after the position `after` up to the head of `record`, in order. An
/// error if an entry is missing, or if the log goes on beyond the head.
pub(super) async fn for_each_entry(
    store: &dyn Store,
    record: &ExperimentRecord,
    mut after: u64,
    mut with: impl FnMut(&LogEntry) -> Result<(), anyhow::Error> + Send,
) -> Result<(), anyhow::Error> {
    let name = &record.name;
    while after < record.head {
        let chunk = store.read(record.id, after, CHUNK).await?;
        for entry in chunk.iter().take_while(|entry| entry.position <= record.head) {
            anyhow::ensure!(
                entry.position == after + 1,
                "the log of experiment `{name}` has a gap after position {after}: see `rankduel verify {name}`"
            );
            after = entry.position;
            with(entry)?;
        }
        anyhow::ensure!(
            !chunk.is_empty(),
            "the log of experiment `{name}` ends at position {after} instead of {}: see `rankduel verify {name}`",
            record.head
        );
    }
    match entry_beyond_head(store, record).await? {
        Some(wrong) => anyhow::bail!("experiment `{name}`: {wrong}: see `rankduel verify {name}`"),
        None => Ok(()),
    }
}

/// An error if the log goes on beyond its head. An append moves the head in the same transaction,
/// so a newer entry must have a newer head.
pub(crate) async fn entry_beyond_head(
    store: &dyn Store,
    record: &ExperimentRecord,
) -> Result<Option<String>, StoreError> {
    let next = store.read(record.id, record.head, 1).await?;
    let Some(beyond) = next.first() else { return Ok(None) };
    let head = store.heads(&[record.id]).await?.first().map_or(0, |head| head.head);
    Ok((head < beyond.position).then(|| beyond_head(beyond.position, head)))
}

pub(super) async fn read_experiment(
    store: &dyn Store,
    name: &str,
) -> Result<(ExperimentRecord, ExperimentSpec), anyhow::Error> {
    let record = store.experiment(name).await?;
    let record = record.ok_or_else(|| anyhow::anyhow!("there is no experiment `{name}`"))?;
    let spec = ExperimentSpec::read(&record.spec)
        .map_err(|why| anyhow::anyhow!("experiment `{name}` cannot be read: {why}"))?;
    Ok((record, spec))
}

/// The snapshot that a pruned log starts from: the oldest one after the pruned entries, in the
/// layout of this program.
pub(super) fn base_of(
    record: &ExperimentRecord,
    spec: &ExperimentSpec,
    snapshots: Vec<Snapshot>,
) -> Result<Snapshot, anyhow::Error> {
    let format = Fold::format_of(spec);
    snapshots
        .into_iter()
        .filter(|snapshot| snapshot.format == format && snapshot.position >= record.pruned_to)
        .min_by_key(|snapshot| snapshot.position)
        .ok_or_else(|| {
            anyhow::anyhow!(
                "the log of experiment `{}` was pruned up to position {}, and there is no later snapshot in the layout \
                 that this version reads ({format})",
                record.name,
                record.pruned_to
            )
        })
}

/// An experiment whose log is folded, outside of a server.
pub(crate) struct FoldedLog {
    pub record: ExperimentRecord,
    pub spec: ExperimentSpec,
    pub state: Fold,
}

impl FoldedLog {
    /// The experiment after its creation, or after the entries of its log that were pruned.
    pub async fn open(store: &dyn Store, name: &str) -> Result<Self, anyhow::Error> {
        let (record, spec) = read_experiment(store, name).await?;
        let state = match record.pruned_to {
            0 => {
                let first = store.read(record.id, 0, 1).await?.into_iter().next();
                Fold::created(first.as_ref(), &spec, record.seed, record.created_at).map_err(
                    |error| {
                        anyhow::anyhow!(
                            "experiment `{name}`: {error}: see `rankduel verify {name}`"
                        )
                    },
                )?
            }
            _ => {
                let base = base_of(&record, &spec, store.snapshots(record.id).await?)?;
                Fold::restore(&spec, record.seed, &base.state).ok_or_else(|| {
                    anyhow::anyhow!(
                        "the snapshot of experiment `{name}` at position {} is damaged: see \
                         `rankduel verify {name}`",
                        base.position
                    )
                })?
            }
        };
        Ok(Self { record, spec, state })
    }

    /// Fold the log up to its head, and call `with` after each entry, with the duel that it
    /// answered.
    pub async fn fold(
        mut self,
        store: &dyn Store,
        mut with: impl FnMut(Option<&OutcomeEvent>, &LogEntry) -> Result<(), anyhow::Error> + Send,
    ) -> Result<Fold, anyhow::Error> {
        let fold = &mut self.state;
        for_each_entry(store, &self.record, fold.state().position, |entry| {
            let answered = fold.apply_chunk(|chunk| chunk.apply(entry))?;
            with(answered.as_ref(), entry)
        })
        .await?;
        Ok(self.state)
    }
}
