//! Importing an experiment.

use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::format::{FORMAT, Head, SnapshotLine};
use super::reader::{Log, Reader};
use rankduel_engine::access::Actor;
use rankduel_engine::consistency::sound_spec;
use rankduel_engine::experiment_spec::{ExperimentSpec, name_error};
use rankduel_engine::fold::Fold;
use rankduel_store::entropy;
use rankduel_store::{AuditNote, Created, ExperimentRecord, Snapshot, Store};

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    New {
        entries: u64,
        /// The original, if it is in this database: both have the same units in the same arms.
        beside: Option<String>,
    },
    /// The experiment existed already. Its log may have grown since it was exported.
    Same,
}

/// Import a file that `export` wrote, under its own name or another one. Nothing is stored unless
/// the whole file can be read and folded. With `by`, the audit log gets an entry with this actor
/// and time (unix milliseconds).
pub async fn import(
    store: &dyn Store,
    file: &mut (dyn BufRead + Send),
    name: Option<&str>,
    by: Option<(&Actor, i64)>,
) -> Result<Import, anyhow::Error> {
    let mut reader = Reader::new(file);
    let first = reader.next()?.ok_or_else(|| anyhow::anyhow!("the file is empty"))?;
    let head: Head = reader.parse(&first)?;
    anyhow::ensure!(
        head.rankduel_export == FORMAT,
        "the file has format {}, and this version reads format {FORMAT}",
        head.rankduel_export
    );
    let original = head.name.clone();
    let name = name.unwrap_or(&original).to_owned();
    if let Some(error) = name_error(&name) {
        anyhow::bail!("{}", error.detail);
    }
    let mut record = head.into_record(name.clone());
    record.id = entropy::experiment_id()?;
    let spec = sound_spec(&record).map_err(|why| reader.wrong(why))?;
    let (fold, base) = match record.pruned_to {
        0 => (None, None),
        _ => {
            let (fold, base) = read_base(&mut reader, &record, &spec)?;
            record.pruned_to = base.position;
            (Some(fold), Some(base))
        }
    };
    let entries = record.head - fold.as_ref().map_or(0, |fold| fold.state().position);
    let mut log = Log::new(reader, fold, &record, &spec);
    if let Some(existing) = store.experiment(&name).await? {
        return compare(store, &existing, &record, log).await;
    }
    let beside = store.experiment(&original).await?;
    let is_same =
        |it: &ExperimentRecord| (it.seed, it.created_at) == (record.seed, record.created_at);
    let beside = beside.filter(is_same).map(|_| original);
    let mut failure = None;
    let mut chunks = std::iter::from_fn(|| match log.chunk() {
        Ok(chunk) if chunk.is_empty() => None,
        Ok(chunk) => Some(Ok(chunk)),
        Err(error) => {
            let why = error.to_string();
            failure = Some(error);
            Some(Err(why))
        }
    });
    let note = by.map(|(by, at)| {
        AuditNote::of_experiment(by, "experiment-imported", &name, at)
            .changed(None, Some(json!({"log_entries": entries})))
    });
    let imported = store.import(&record, base.as_ref(), &mut chunks, note.as_ref()).await;
    match (failure, imported) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(Created::New(_))) => Ok(Import::New { entries, beside }),
        (None, Ok(Created::Taken(_))) => {
            Err(anyhow::anyhow!("experiment `{name}` was created meanwhile; import again"))
        }
    }
}

/// Read the line with the snapshot that a pruned log starts from.
fn read_base(
    reader: &mut Reader<'_>,
    record: &ExperimentRecord,
    spec: &ExperimentSpec,
) -> Result<(Fold, Snapshot), anyhow::Error> {
    let line =
        reader.next()?.ok_or_else(|| anyhow::anyhow!("the file ends after its first line"))?;
    let SnapshotLine { snapshot } = reader.parse(&line)?;
    let state = STANDARD.decode(&snapshot.state).map_err(|error| reader.wrong(error))?;
    let fold = Fold::restore(spec, record.seed, &state)
        .filter(|fold| {
            fold.state().position == snapshot.position && fold.format() == snapshot.format
        })
        .ok_or_else(|| {
            reader.wrong("the snapshot is damaged or has a layout that this version does not read")
        })?;
    anyhow::ensure!(
        (record.pruned_to..=record.head).contains(&snapshot.position),
        reader.wrong(format!(
            "the snapshot is of position {}; it must be from {} to {}",
            snapshot.position, record.pruned_to, record.head
        ))
    );
    let base = Snapshot {
        experiment: 0,
        position: snapshot.position,
        format: snapshot.format,
        state,
        created_at: snapshot.created_at,
    };
    Ok((fold, base))
}

/// Check that the existing experiment is the one in the file, entry by entry.
async fn compare(
    store: &dyn Store,
    existing: &ExperimentRecord,
    record: &ExperimentRecord,
    mut log: Log<'_>,
) -> Result<Import, anyhow::Error> {
    let name = &record.name;
    let other = |what: String| {
        anyhow::anyhow!(
            "experiment `{name}` exists and is a different one: {what}. Nothing was changed; `--as NAME` imports under \
             another name"
        )
    };
    anyhow::ensure!(existing.seed == record.seed, other("it has a different seed".into()));
    anyhow::ensure!(
        existing.head >= record.head,
        other(format!("it has {} of the {} log entries", existing.head, record.head))
    );
    loop {
        let chunk = log.chunk()?;
        let (Some(first), Some(last)) = (chunk.first(), chunk.last()) else {
            return Ok(Import::Same);
        };
        let unpruned: Vec<_> =
            chunk.iter().filter(|entry| entry.position > existing.pruned_to).cloned().collect();
        if last.position > existing.pruned_to {
            let after = existing.pruned_to.max(first.position - 1);
            let kept = store.read(existing.id, after, unpruned.len() as u32).await?;
            let mut pairs = unpruned.iter().zip(&kept);
            if let Some((entry, _)) = pairs.find(|(entry, kept)| entry != kept) {
                return Err(other(format!("log entry {} differs", entry.position)));
            }
            anyhow::ensure!(
                unpruned.len() == kept.len(),
                other(format!("its log ends before {}", last.position))
            );
        }
    }
}
