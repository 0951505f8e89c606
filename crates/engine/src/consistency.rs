//! Whether the record of an experiment, its log and its state agree.
//!
//! Import, verify and loading share these checks. So nothing is imported that verify reports, and
//! what is loaded can be served. The fold checks each entry of a log by itself
//! ([`FoldError`](super::fold::FoldError)).

use super::experiment_spec::{ExperimentSpec, name_error};
use super::fold::{Fold, MAX_POSITION};
use super::page_rules::CurrentMethod;
use super::status::status_error;
use crate::clock;
use rankduel_store::events::{ControlEvent, Event, Status};
use rankduel_store::{ExperimentRecord, LogEntry};

/// Faults of a record by itself, one sentence each. `spec` is its spec.
pub fn record_errors(record: &ExperimentRecord, spec: &ExperimentSpec) -> Vec<String> {
    let mut errors = Vec::new();
    if let Some(error) = name_error(&record.name) {
        errors.push(error.detail);
    }
    let archived = record.archived_at.is_some();
    errors.extend(status_error(record.status, record.winner, archived, spec.rankers.len()));
    if record.head > MAX_POSITION {
        errors.push(format!("its head is {}, beyond 2^53", record.head));
    }
    // each change of a record is an entry of its log
    if record.version == 0 || record.version - 1 > record.head {
        errors.push(format!(
            "its version is {}, and a log that ends at {} has at most {} changes",
            record.version, record.head, record.head
        ));
    }
    if record.pruned_to > record.head {
        errors.push(format!(
            "it was pruned up to position {}, beyond its head {}",
            record.pruned_to, record.head
        ));
    }
    for (what, time) in [
        ("created", Some(record.created_at)),
        ("changed", Some(record.updated_at)),
        ("archived", record.archived_at),
    ] {
        if let Some(time) = time.filter(|&time| !clock::is_a_time(time)) {
            errors.push(format!("it was {what} at {time}, which is not a time"));
        }
    }
    errors.extend(CurrentMethod::of(record, &spec.pages).err());
    errors
}

/// The spec of a record that has no error by itself. The error is the first one.
pub fn sound_spec(record: &ExperimentRecord) -> Result<ExperimentSpec, String> {
    let spec = ExperimentSpec::read(&record.spec)?;
    match record_errors(record, &spec).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(spec),
    }
}

/// Differences between a record and the state that its whole log folds to.
pub fn state_errors(record: &ExperimentRecord, spec: &ExperimentSpec, fold: &Fold) -> Vec<String> {
    let mut errors = Vec::new();
    if fold.roster_changes() != spec.roster_changes {
        errors.push("its log and its record have different roster changes".into());
    }
    errors.extend(spec.changes().differences(fold.changes()));
    if i64::from(spec.answer_window_seconds) * 1000 != fold.cohorts().window_ms() {
        errors.push("its record and its log have different answer windows".into());
    }
    if let Ok(current) = CurrentMethod::of(record, &spec.pages) {
        let (versions, newest) = (fold.methods().len(), fold.methods().last());
        if current.version as usize != versions
            || newest.is_none_or(|newest| newest.method != current.method)
        {
            errors.push(format!(
                "its record has version {} of the interleaving method, and its log has another \
                 method or another number of versions ({versions})",
                current.version
            ));
        }
    }
    errors
}

/// The fault of a log that ends before the recorded head.
pub fn short_log(head: u64, end: u64) -> String {
    format!("its head is {head}, and its log ends at {end}")
}

/// The fault of a log that has an entry beyond the recorded head. An append moves the head in
/// the same transaction, so a head that is read after the entry must not be lower.
pub fn beyond_head(entry: u64, head: u64) -> String {
    format!("log entry {entry} is beyond the head {head}")
}

/// The changes of a record that its log contains.
#[derive(Debug, Default)]
pub struct LoggedChanges {
    changes: u64,
    exclusions: usize,
    controls: usize,
    last_status: Option<(Status, Option<u16>)>,
    archived: bool,
}

impl LoggedChanges {
    /// Note an entry, in the order of the log. Returns what is wrong between it and the record.
    pub fn note(
        &mut self,
        entry: &LogEntry,
        record: &ExperimentRecord,
        spec: &ExperimentSpec,
    ) -> Option<String> {
        let Event::Control(event) = &entry.event else { return None };
        let position = entry.position;
        let mut wrong = None;
        match event {
            ControlEvent::Status { status, winner, archived, .. } => {
                self.last_status = Some((*status, *winner));
                self.archived |= archived;
            }
            ControlEvent::ControlNamed { ranker } => {
                self.controls += 1;
                let in_record = spec.former_controls.get(self.controls).unwrap_or(&spec.control);
                let named = spec.rankers.get(usize::from(*ranker)).map(|ranker| &ranker.id);
                if record.pruned_to == 0 && in_record.as_ref() != named {
                    wrong = Some(format!(
                        "log entry {position} names another control than its record has"
                    ));
                }
            }
            ControlEvent::RankerEnlisted { ranker, id } => {
                let known = spec.rankers.get(usize::from(*ranker));
                if known.is_none_or(|known| known.id != *id) {
                    wrong = Some(format!(
                        "log entry {position} enlists ranker `{id}` at index {ranker}, and its record \
                         does not have that ranker there"
                    ));
                }
            }
            ControlEvent::UnitsExcluded(exclusion) => {
                // the first changes of a pruned log are unknown
                let in_record = match record.pruned_to {
                    0 => spec.exclusions.get(self.exclusions) == Some(exclusion),
                    _ => spec.exclusions.contains(exclusion),
                };
                self.exclusions += 1;
                if !in_record {
                    wrong = Some(format!(
                        "log entry {position} excludes other units than its record does"
                    ));
                }
            }
            ControlEvent::Interleaving { .. }
            | ControlEvent::RankerRetired { .. }
            | ControlEvent::Settings { .. } => {}
            ControlEvent::SelfDuels { .. }
            | ControlEvent::BatchResults { .. }
            | ControlEvent::Clicks(_)
            | ControlEvent::Settled {}
            | ControlEvent::Notified {}
            | ControlEvent::Values { .. }
            | ControlEvent::ValuesComplete { .. }
            | ControlEvent::CohortsComplete { .. } => return None,
        }
        self.changes += 1;
        wrong
    }

    /// Differences between the record and the changes in its log, all of which were noted. Of a
    /// pruned log, the first changes are unknown.
    pub fn errors(&self, record: &ExperimentRecord) -> Vec<String> {
        let mut errors = Vec::new();
        let whole = record.pruned_to == 0;
        if whole && record.version != self.changes + 1 || record.version <= self.changes {
            errors.push(format!(
                "its version is {}, and its log has {} changes: the version should be {}",
                record.version,
                self.changes,
                self.changes + 1
            ));
        }
        let created = Some((Status::Running, None)).filter(|_| whole);
        let in_record = (record.status, record.winner);
        let archived = record.archived_at.is_some();
        if let Some(in_log) = self.last_status.or(created)
            && (in_record != in_log || (whole || self.archived) && archived != self.archived)
        {
            let or_archived = |archived| if archived { ", archived" } else { "" };
            errors.push(format!(
                "its record says {:?} with winner {:?}{}, and its log says {:?} with winner {:?}{}",
                in_record.0,
                in_record.1,
                or_archived(archived),
                in_log.0,
                in_log.1,
                or_archived(self.archived)
            ));
        }
        errors
    }
}
