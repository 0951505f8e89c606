//! Exporting an experiment.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::format::{CHUNK, End, EntryLine, FORMAT, Head, SnapshotFields, SnapshotLine, hex};
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::fold::Fold;
use crate::store::{ExperimentRecord, Snapshot, Store};

/// Write an experiment with its log up to now. Returns the number of entries.
pub async fn export(
    store: &dyn Store,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<u64, anyhow::Error> {
    let record = store
        .experiment(name)
        .await?
        .ok_or_else(|| anyhow::anyhow!("there is no experiment `{name}`"))?;
    let mut lines = Lines { out, digest: Sha256::new() };
    lines.write(&Head {
        rankduel_export: FORMAT,
        name: record.name.clone(),
        spec: ExperimentSpec::read(&record.spec)
            .map_err(|why| anyhow::anyhow!("experiment `{name}` cannot be exported: {why}"))?,
        seed: record.seed,
        status: record.status,
        winner: record.winner,
        version: record.version,
        head: record.head,
        created_at: record.created_at,
        updated_at: record.updated_at,
        archived_at: record.archived_at,
        pruned_to: record.pruned_to,
        interleaving: record.interleaving.clone(),
    })?;
    let mut after = record.pruned_to;
    if record.pruned_to > 0 {
        let base = base_of(&record, store.snapshots(record.id).await?)?;
        after = base.position;
        lines.write(&SnapshotLine {
            snapshot: SnapshotFields {
                position: base.position,
                format: base.format,
                state: STANDARD.encode(&base.state),
                created_at: base.created_at,
            },
        })?;
    }
    let mut entries = 0;
    while after < record.head {
        let chunk = store.read(record.id, after, CHUNK).await?;
        for entry in chunk.iter().take_while(|entry| entry.position <= record.head) {
            anyhow::ensure!(
                entry.position == after + 1,
                "the log of experiment `{name}` has a gap after position {after}: see `rankduel verify {name}`"
            );
            after = entry.position;
            entries += 1;
            lines.write(&EntryLine::of(entry))?;
        }
        anyhow::ensure!(
            !chunk.is_empty(),
            "the log of experiment `{name}` ends at position {after} instead of {}: see `rankduel verify {name}`",
            record.head
        );
    }
    let sha256 = hex(&lines.digest.clone().finalize());
    lines.write(&End { entries, sha256 })?;
    lines.out.flush()?;
    Ok(entries)
}

/// The snapshot that a pruned log starts from: the oldest one after the pruned entries, in the
/// layout of this program.
fn base_of(record: &ExperimentRecord, snapshots: Vec<Snapshot>) -> Result<Snapshot, anyhow::Error> {
    let spec = ExperimentSpec::read(&record.spec)
        .map_err(|why| anyhow::anyhow!("{}: {why}", record.name))?;
    let format = Fold::start(&spec, record.seed, record.created_at).format();
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

struct Lines<'a> {
    out: &'a mut (dyn Write + Send),
    digest: Sha256,
}

impl Lines<'_> {
    fn write(&mut self, line: &impl Serialize) -> Result<(), anyhow::Error> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.digest.update(&text);
        Ok(self.out.write_all(&text)?)
    }
}
