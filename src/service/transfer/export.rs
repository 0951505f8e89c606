//! Exporting an experiment.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::format::{End, EntryLine, Head, SnapshotFields, SnapshotLine, hex};
use super::log::{base_of, for_each_entry, read_experiment};
use rankduel_store::Store;

/// Write an experiment with its log up to now. Returns the number of entries.
pub async fn export(
    store: &dyn Store,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<u64, anyhow::Error> {
    let (record, spec) = read_experiment(store, name).await?;
    let mut lines = Lines { out, digest: Sha256::new() };
    lines.write(&Head::of(&record, &spec))?;
    let mut after = record.pruned_to;
    if record.pruned_to > 0 {
        let base = base_of(&record, &spec, store.snapshots(record.id).await?)?;
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
    for_each_entry(store, &record, after, |entry| {
        entries += 1;
        lines.write(&EntryLine::of(entry))
    })
    .await?;
    let sha256 = hex(&lines.digest.clone().finalize());
    lines.write(&End { entries, sha256 })?;
    lines.out.flush()?;
    Ok(entries)
}

/// The written lines, with their digest.
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
