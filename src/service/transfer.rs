//! An experiment as a file: JSON lines, the same from either database, for keeping and for bringing
//! in elsewhere.
//!
//! The first line describes the experiment; then comes, where the log was pruned, the snapshot that
//! took its beginning's place; then one line for each log entry, in order; and last a line with the
//! number of entries and the SHA-256 of all lines before it, so that a file that was cut off or
//! changed is known as such. `docs/operations.md` describes every field.

use std::io::{BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::access::Actor;
use crate::engine::experiment_spec::{ExperimentSpec, name_error};
use crate::engine::fold::Fold;
use crate::events::{ControlEvent, Event, OutcomeEvent, Status};
use crate::store::{AuditNote, ExperimentRecord, Imported, LogEntry, Snapshot, Store};

/// Version of the format. A reader refuses what it does not know.
const FORMAT: u32 = 1;
/// Entries read from the store, or written to it, at a time.
const PAGE: u32 = 10_000;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    rankduel_export: u32,
    name: String,
    spec: ExperimentSpec,
    seed: u64,
    status: Status,
    winner: Option<u16>,
    version: u64,
    head: u64,
    created_at: i64,
    updated_at: i64,
    archived_at: Option<i64>,
    pruned_to: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interleaving: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotLine {
    snapshot: SnapshotFields,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotFields {
    position: u64,
    format: u32,
    state: String,
    created_at: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine {
    position: u64,
    nonce: String,
    recorded_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<ControlEvent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    entries: u64,
    sha256: String,
}

/// What went wrong with a file or its experiment.
pub type Failure = anyhow::Error;

/// Write the experiment and its log up to now. Returns the number of entries.
pub async fn export(
    store: &dyn Store,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<u64, Failure> {
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
        let page = store.read(record.id, after, PAGE).await?;
        for entry in page.iter().take_while(|entry| entry.position <= record.head) {
            anyhow::ensure!(
                entry.position == after + 1,
                "the log of experiment `{name}` has a gap after position {after}: see `rankduel verify {name}`"
            );
            after = entry.position;
            entries += 1;
            lines.write(&EntryLine::of(entry))?;
        }
        anyhow::ensure!(
            !page.is_empty(),
            "the log of experiment `{name}` ends at position {after} and should end at {}: see `rankduel verify {name}`",
            record.head
        );
    }
    let sha256 = hex(&lines.digest.clone().finalize());
    lines.write(&End { entries, sha256 })?;
    lines.out.flush()?;
    Ok(entries)
}

/// The snapshot that a pruned log starts from: the oldest one that covers what was pruned, in this
/// program's layout.
fn base_of(record: &ExperimentRecord, snapshots: Vec<Snapshot>) -> Result<Snapshot, Failure> {
    let spec = ExperimentSpec::read(&record.spec)
        .map_err(|why| anyhow::anyhow!("{}: {why}", record.name))?;
    let format = Fold::start(&spec, record.seed, record.created_at).format();
    snapshots
        .into_iter()
        .filter(|snapshot| snapshot.format == format && snapshot.position >= record.pruned_to)
        .min_by_key(|snapshot| snapshot.position)
        .ok_or_else(|| {
            anyhow::anyhow!(
                "the log of experiment `{}` was pruned up to position {}, and there is no snapshot from there on in \
                 the layout that this version reads ({format})",
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
    fn write(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.digest.update(&text);
        Ok(self.out.write_all(&text)?)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl EntryLine {
    fn of(entry: &LogEntry) -> Self {
        let (outcome, event) = match &entry.event {
            Event::Outcome(outcome) => (Some(*outcome), None),
            Event::Control(event) => (None, Some(event.clone())),
        };
        let nonce = format!("{:032x}", entry.nonce);
        Self { position: entry.position, nonce, recorded_at: entry.recorded_at, outcome, event }
    }

    fn entry(self) -> Result<LogEntry, String> {
        let nonce = u128::from_str_radix(&self.nonce, 16)
            .ok()
            .filter(|_| self.nonce.len() == 32)
            .ok_or_else(|| {
            format!("`nonce` is {:?}; it must be 32 hexadecimal digits", self.nonce)
        })?;
        let event = match (self.outcome, self.event) {
            (Some(outcome), None) => Event::Outcome(outcome),
            (None, Some(event)) => Event::Control(event),
            _ => return Err("an entry has either `outcome` or `event`".into()),
        };
        Ok(LogEntry { position: self.position, nonce, recorded_at: self.recorded_at, event })
    }
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// It is there now.
    New {
        /// How many log entries were imported.
        entries: u64,
    },
    /// It was there before, the same; since then it may have gone on.
    Same,
}

/// Bring in what [`export`] wrote, under its own name or another one. All of it is read, folded and
/// compared before any of it is kept; with it, where `by` says who does it and when (unix
/// milliseconds), an entry of the audit log.
pub async fn import(
    store: &dyn Store,
    file: &mut (dyn BufRead + Send),
    name: Option<&str>,
    by: Option<(&Actor, i64)>,
) -> Result<Import, Failure> {
    let mut reader = Reader { file, line: 0, digest: Sha256::new(), ended: false };
    let first = reader.next()?.ok_or_else(|| anyhow::anyhow!("the file is empty"))?;
    let head: Head = reader.parse(&first)?;
    anyhow::ensure!(
        head.rankduel_export == FORMAT,
        "the file has format {}, and this version reads format {FORMAT}",
        head.rankduel_export
    );
    let name = name.unwrap_or(&head.name).to_owned();
    if let Some(error) = name_error(&name) {
        anyhow::bail!("{}", error.detail);
    }
    let text = serde_json::to_string(&head.spec)?;
    let spec = ExperimentSpec::read(&text).map_err(|why| reader.wrong(why))?;
    let mut record = ExperimentRecord {
        id: 0,
        name: name.clone(),
        spec: text,
        seed: head.seed,
        status: head.status,
        winner: head.winner,
        version: head.version,
        head: head.head,
        created_at: head.created_at,
        updated_at: head.updated_at,
        archived_at: head.archived_at,
        pruned_to: 0,
        interleaving: head.interleaving,
    };
    let mut fold = Fold::start(&spec, record.seed, record.created_at);
    let mut base = None;
    if head.pruned_to > 0 {
        let line =
            reader.next()?.ok_or_else(|| anyhow::anyhow!("the file ends after its first line"))?;
        let SnapshotLine { snapshot } = reader.parse(&line)?;
        let state = STANDARD.decode(&snapshot.state).map_err(|error| reader.wrong(error))?;
        fold = Fold::restore(&spec, record.seed, &state)
            .filter(|fold| fold.position() == snapshot.position && fold.format() == snapshot.format)
            .ok_or_else(|| {
                reader.wrong(
                    "the snapshot is damaged, or of a layout that this version does not read",
                )
            })?;
        record.pruned_to = snapshot.position;
        base = Some(Snapshot {
            experiment: 0,
            position: snapshot.position,
            format: snapshot.format,
            state,
            created_at: snapshot.created_at,
        });
    }
    let first_position = fold.position();
    if let Some(existing) = store.experiment(&name).await? {
        let created = spec.as_created();
        let same_spec = ExperimentSpec::read(&existing.spec)
            .is_ok_and(|existing| existing.as_created() == created);
        return compare(store, &existing, &record, same_spec, fold, reader).await;
    }
    let mut failure = None;
    let mut pages = std::iter::from_fn(|| match reader.page(&mut fold, head.head) {
        Ok(page) if page.is_empty() && fold.roster_changes() == spec.roster_changes => None,
        Ok(page) if page.is_empty() => {
            let why = "the file's log and its first line do not agree on which rankers have come and gone";
            failure = Some(anyhow::anyhow!(why));
            Some(Err(why.into()))
        }
        Ok(page) => Some(Ok(page)),
        Err(error) => {
            let why = error.to_string();
            failure = Some(error);
            Some(Err(why))
        }
    });
    let entries = head.head - first_position;
    let note = by.map(|(by, at)| {
        AuditNote::of_experiment(by, "experiment-imported", &name, at)
            .changed(None, Some(json!({"log_entries": entries})))
    });
    let imported = store.import(&record, base.as_ref(), &mut pages, note.as_ref()).await;
    match (failure, imported) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(Imported::New(_))) => Ok(Import::New { entries }),
        (None, Ok(Imported::Taken(_))) => {
            Err(anyhow::anyhow!("experiment `{name}` was created meanwhile; import again"))
        }
    }
}

/// Whether the experiment that has the name is the one of the file, entry by entry.
async fn compare(
    store: &dyn Store,
    existing: &ExperimentRecord,
    record: &ExperimentRecord,
    same_spec: bool,
    mut fold: Fold,
    mut reader: Reader<'_>,
) -> Result<Import, Failure> {
    let name = &record.name;
    let other = |what: String| {
        anyhow::anyhow!(
            "experiment `{name}` exists and is another one: {what}. Nothing was changed; `--as NAME` imports under \
             another name"
        )
    };
    anyhow::ensure!(same_spec, other("it was created from another spec".into()));
    anyhow::ensure!(existing.seed == record.seed, other("it has another seed".into()));
    anyhow::ensure!(
        existing.head >= record.head,
        other(format!("it has {} of the {} log entries", existing.head, record.head))
    );
    loop {
        let page = reader.page(&mut fold, record.head)?;
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            return Ok(Import::Same);
        };
        let seen: Vec<_> =
            page.iter().filter(|entry| entry.position > existing.pruned_to).cloned().collect();
        if last.position > existing.pruned_to {
            let after = existing.pruned_to.max(first.position - 1);
            let kept = store.read(existing.id, after, seen.len() as u32).await?;
            if let Some((entry, _)) = seen.iter().zip(&kept).find(|(entry, kept)| entry != kept) {
                return Err(other(format!("log entry {} differs", entry.position)));
            }
            anyhow::ensure!(
                seen.len() == kept.len(),
                other(format!("its log ends before {}", last.position))
            );
        }
    }
}

/// Reads a file line by line.
struct Reader<'a> {
    file: &'a mut (dyn BufRead + Send),
    line: u64,
    digest: Sha256,
    ended: bool,
}

impl Reader<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        anyhow::anyhow!("line {}: {what}", self.line)
    }

    fn parse<T: for<'de> Deserialize<'de>>(&self, line: &str) -> Result<T, Failure> {
        serde_json::from_str(line).map_err(|error| self.wrong(error))
    }

    fn next(&mut self) -> Result<Option<String>, Failure> {
        let mut text = String::new();
        self.line += 1;
        let read = self.file.read_line(&mut text).map_err(|error| self.wrong(error))?;
        self.digest.update(text.as_bytes());
        Ok((read > 0).then_some(text))
    }

    /// The next entries, folded; none after the last one, when the file has ended as it should.
    fn page(&mut self, fold: &mut Fold, head: u64) -> Result<Vec<LogEntry>, Failure> {
        let mut page = Vec::new();
        while fold.position() < head && page.len() < PAGE as usize {
            let line = self.next()?.ok_or_else(|| {
                self.wrong(format!(
                    "the file ends after log entry {}, before {head}",
                    fold.position()
                ))
            })?;
            let entry = self.parse::<EntryLine>(&line)?.entry().map_err(|what| self.wrong(what))?;
            fold.apply(&entry).map_err(|error| self.wrong(error))?;
            page.push(entry);
        }
        if page.is_empty() && !self.ended {
            let expected = hex(&self.digest.clone().finalize());
            let line = self
                .next()?
                .ok_or_else(|| self.wrong("the file ends before its last line, the digest"))?;
            let end: End = self.parse(&line)?;
            anyhow::ensure!(
                end.sha256 == expected,
                self.wrong("the file was changed: its digest does not fit")
            );
            anyhow::ensure!(self.next()?.is_none(), self.wrong("there is more after the digest"));
            self.ended = true;
        }
        Ok(page)
    }
}
