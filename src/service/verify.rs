//! Verifying a store: [`verify`] reads all data of an experiment and reports inconsistencies.

use std::collections::HashMap;

use crate::service::transfer::{CHUNK, entry_beyond_head};
use rankduel_engine::consistency::{record_errors, short_log, state_errors};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::{ExperimentRecord, LogEntry, Snapshot, Store, StoreError};

#[derive(Debug, Default)]
pub struct Findings {
    /// Log entries that were read.
    pub entries: u64,
    /// Snapshots that were compared with the fold.
    pub snapshots: u64,
    /// Inconsistencies, one sentence each.
    pub wrong: Vec<String>,
    /// Remarks on data that is consistent but unusual.
    pub remarks: Vec<String>,
}

/// Verify one experiment: its record, its log (dense, unique, foldable, as long as the record
/// says), and its snapshots (each equal to the fold at its position). Returns an error only if the
/// store cannot be read.
pub async fn verify(store: &dyn Store, name: &str) -> Result<Findings, StoreError> {
    let mut findings = Findings::default();
    let record = match store.experiment(name).await {
        Ok(Some(record)) => record,
        Ok(None) => {
            findings.wrong.push("there is no such experiment".into());
            return Ok(findings);
        }
        Err(error) => {
            findings.wrong.push(format!("its record cannot be read: {}", corruption(error)?));
            return Ok(findings);
        }
    };
    let snapshots = match store.snapshots(record.id).await {
        Ok(snapshots) => snapshots,
        Err(error) => {
            findings.wrong.push(format!("its snapshots cannot be read: {}", corruption(error)?));
            Vec::new()
        }
    };
    let spec = match ExperimentSpec::read(&record.spec) {
        Ok(spec) => Some(spec),
        Err(why) => {
            findings.wrong.push(why);
            None
        }
    };
    if let Some(spec) = &spec {
        findings.wrong.extend(record_errors(&record, spec));
    }
    let mut folding = Folding::start(&record, spec.as_ref(), snapshots, &mut findings);
    read_log(store, &record, &mut folding, &mut findings).await?;
    folding.end(&mut findings);
    Ok(findings)
}

/// Read the log from its first entry to the head, and look for an entry beyond the head.
async fn read_log(
    store: &dyn Store,
    record: &ExperimentRecord,
    folding: &mut Folding<'_>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut order = Order { last: record.pruned_to, nonces: HashMap::new() };
    let mut after = 0;
    let mut leftover = 0;
    while after < record.head {
        let chunk = match store.read(record.id, after, CHUNK).await {
            Ok(chunk) => chunk,
            Err(error) => {
                let what = corruption(error)?;
                findings.wrong.push(format!("{what}; later entries were not read"));
                return Ok(());
            }
        };
        if chunk.is_empty() {
            break;
        }
        for entry in chunk {
            after = entry.position;
            if entry.position > record.head {
                break;
            }
            if entry.position <= record.pruned_to {
                leftover += 1;
                continue;
            }
            findings.entries += 1;
            order.check(&entry, findings);
            folding.apply(&entry, findings);
        }
    }
    if order.last < record.head {
        findings.wrong.push(short_log(record.head, order.last));
    }
    if leftover > 0 {
        findings.remarks.push(format!(
            "{leftover} entries up to position {} still exist: pruning was interrupted, run it again",
            record.pruned_to
        ));
    }
    match entry_beyond_head(store, record).await {
        Ok(wrong) => findings.wrong.extend(wrong),
        Err(error) => drop(corruption(error)?),
    }
    Ok(())
}

/// The positions and nonces of the entries read so far.
struct Order {
    /// The last position.
    last: u64,
    /// The position of each nonce.
    nonces: HashMap<u128, u64>,
}

impl Order {
    /// Check that an entry follows the last one, and that its nonce is new.
    fn check(&mut self, entry: &LogEntry, findings: &mut Findings) {
        let missing = self.last + 1;
        if entry.position != missing {
            findings.wrong.push(match entry.position - self.last {
                2 => format!("log entry {missing} is missing"),
                _ => format!("log entries {missing} to {} are missing", entry.position - 1),
            });
        }
        self.last = entry.position;
        if let Some(earlier) = self.nonces.insert(entry.nonce, entry.position) {
            findings.wrong.push(format!(
                "log entries {earlier} and {} have the same nonce: an outcome counts twice",
                entry.position
            ));
        }
    }
}

/// The text of a [`StoreError::Corrupt`]; any other error ends the verification.
fn corruption(error: StoreError) -> Result<String, StoreError> {
    match error {
        StoreError::Corrupt(what) => Ok(what),
        error => Err(error),
    }
}

/// The fold of the entries read so far, and the data it must agree with.
struct Folding<'a> {
    /// `None` before the first entry, and once an entry could not be folded.
    fold: Option<Fold>,
    spec: Option<&'a ExperimentSpec>,
    /// Snapshots in the layout of this program, newest first.
    snapshots: Vec<Snapshot>,
    /// How many entries the fold sets aside, and the position of the first.
    set_aside: Option<(u64, u64)>,
    record: &'a ExperimentRecord,
}

impl<'a> Folding<'a> {
    fn start(
        record: &'a ExperimentRecord,
        spec: Option<&'a ExperimentSpec>,
        snapshots: Vec<Snapshot>,
        findings: &mut Findings,
    ) -> Self {
        let mut fold = None;
        let mut ours = Vec::new();
        for snapshot in snapshots {
            match spec {
                Some(spec) if Fold::format_of(spec) == snapshot.format => {
                    if snapshot.position > record.head {
                        findings.wrong.push(format!(
                            "there is a snapshot at position {}, beyond the head {}",
                            snapshot.position, record.head
                        ));
                    } else {
                        ours.push(snapshot);
                    }
                }
                Some(_) => findings.remarks.push(format!(
                    "the snapshot at position {} has the layout of another version ({}) and was not checked",
                    snapshot.position, snapshot.format
                )),
                None => {}
            }
        }
        ours.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.position));
        if let (Some(spec), true) = (spec, record.pruned_to > 0) {
            // folding starts at the oldest snapshot after the pruned entries
            let base = ours.iter().rfind(|snapshot| snapshot.position >= record.pruned_to);
            let restored = base.and_then(|base| {
                Fold::restore(spec, record.seed, &base.state)
                    .filter(|fold| fold.state().position == base.position)
            });
            if restored.is_none() {
                findings.wrong.push(format!(
                    "its log was pruned up to position {}, and no later snapshot can be read",
                    record.pruned_to
                ));
            }
            fold = restored;
        }
        Self { fold, spec, snapshots: ours, set_aside: None, record }
    }

    fn apply(&mut self, entry: &LogEntry, findings: &mut Findings) {
        if let (1, Some(spec)) = (entry.position, self.spec) {
            let Self { record, .. } = self;
            match Fold::created(Some(entry), spec, record.seed, record.created_at) {
                Ok(fold) => self.fold = Some(fold),
                Err(error) => {
                    findings.wrong.push(format!("{error}; later entries were not folded"));
                }
            }
            return;
        }
        let Some(fold) = &mut self.fold else { return };
        if entry.position <= fold.state().position {
            return; // before the snapshot that a pruned log starts from
        }
        self.compare_up_to(entry.position - 1, findings);
        let Some(fold) = &mut self.fold else { return };
        if fold.state().sets_aside(entry) {
            self.set_aside.get_or_insert((0, entry.position)).0 += 1;
        }
        if let Err(error) = fold.apply(entry) {
            findings.wrong.push(format!("{error}; later entries were not folded"));
            self.fold = None;
        }
    }

    /// Compare the fold with the snapshots at its position. Earlier ones cannot be compared.
    fn compare_up_to(&mut self, position: u64, findings: &mut Findings) {
        let Some(fold) = &self.fold else { return };
        while let Some(snapshot) = self.snapshots.pop_if(|snapshot| snapshot.position <= position) {
            if snapshot.position != fold.state().position {
                continue;
            }
            findings.snapshots += 1;
            let restored =
                self.spec.and_then(|spec| Fold::restore(spec, self.record.seed, &snapshot.state));
            match restored {
                None if Fold::is_readable(&snapshot.state) => findings.remarks.push(format!(
                    "the snapshot at position {} is older than an exclusion; it is ignored when the \
                     experiment is loaded",
                    snapshot.position
                )),
                None => findings.wrong.push(format!(
                    "the snapshot at position {} is damaged; it is ignored when the experiment is loaded",
                    snapshot.position
                )),
                // states are equal if their saved bytes are equal
                Some(restored) if restored.save() == fold.save() => {}
                Some(_) => findings.wrong.push(format!(
                    "the snapshot at position {} is not what the log folds to: delete it",
                    snapshot.position
                )),
            }
        }
    }

    fn end(mut self, findings: &mut Findings) {
        self.compare_up_to(self.record.head, findings);
        if let Some((entries, first)) = self.set_aside {
            findings.remarks.push(format!(
                "{entries} answers, the first at position {first}, rest on entries that the log has lost: they do not \
                 count, and nothing needs to be repaired"
            ));
        }
        // changes may not have been read
        let (Some(fold), Some(spec)) = (&self.fold, self.spec) else { return };
        findings.wrong.extend(state_errors(self.record, spec, fold));
    }
}
