//! Whether the record of an experiment, its log and its state agree.
//!
//! Import, verify and loading share these checks. So nothing is imported that verify reports, and
//! what is loaded can be served. The fold checks each entry of a log by itself
//! ([`FoldError`](super::fold::FoldError)).

use std::collections::BTreeSet;

use serde_json::Value;

use super::experiment_spec::{ExperimentSpec, name_error};
use super::fold::{Fold, MAX_POSITION};
use crate::clock;
use crate::lifecycle::Lifecycle;
use rankduel_store::ExperimentRecord;

/// Faults of a record by itself, one sentence each. `spec` is its spec.
pub fn record_errors(record: &ExperimentRecord, spec: &ExperimentSpec) -> Vec<String> {
    let mut errors = Vec::new();
    if let Some(error) = name_error(&record.name) {
        errors.push(error.detail);
    }
    errors.extend(Lifecycle::of(record).error(spec.rankers.len()));
    if record.head > MAX_POSITION {
        errors.push(format!("its head is {}, beyond 2^53", record.head));
    }
    // the creation and each change of a record are entries of its log
    if !(1..=record.head).contains(&record.version) {
        errors.push(format!(
            "its version is {}, and a log that ends at {} has as many changes at most",
            record.version, record.head
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

/// Differences between a record and the state that its whole log folds to, one sentence each.
pub fn state_errors(record: &ExperimentRecord, spec: &ExperimentSpec, fold: &Fold) -> Vec<String> {
    let mut errors = Vec::new();
    if fold.state().spec != *spec {
        let members = |spec| serde_json::to_value(spec).unwrap_or_default();
        let (in_record, in_log) = (members(spec), members(&fold.state().spec));
        let names = [&in_record, &in_log].into_iter().filter_map(Value::as_object);
        let names: BTreeSet<_> = names.flat_map(|members| members.keys()).collect();
        let differing: Vec<_> =
            names.into_iter().filter(|name| in_record[*name] != in_log[*name]).cloned().collect();
        errors.push(format!(
            "its record is not what its log folds to: they differ in {}",
            differing.join(", ")
        ));
    }
    let (in_record, in_log) = (Lifecycle::of(record), fold.state().lifecycle);
    if in_record != in_log {
        errors.push(format!("its record says {in_record:?}, and its log says {in_log:?}"));
    }
    if record.version != fold.state().version {
        errors.push(format!(
            "its version is {}, and by its log it is {}",
            record.version,
            fold.state().version
        ));
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
