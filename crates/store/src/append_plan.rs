//! Decides which events of an append become log entries, and at which positions. Both databases
//! use it.

use std::collections::{BTreeMap, HashMap};

use super::sql::log_row::LogRow;
use super::sql::numbers::to_column;
use super::{Appended, ExperimentId, Head, LogEntry, NewEvent, Nonce, StoreError};
use crate::events::Event;

/// A log entry to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewEntry<'a> {
    pub experiment: ExperimentId,
    pub position: u64,
    pub nonce: Nonce,
    pub event: &'a Event,
}

/// The writes of an append, and its results.
#[derive(Debug)]
pub(super) struct AppendPlan<'a> {
    pub entries: Vec<NewEntry<'a>>,
    /// New heads of the experiments that get entries.
    pub heads: BTreeMap<ExperimentId, u64>,
    /// One result for each event, in the order given.
    pub results: Vec<Appended>,
}

impl AppendPlan<'_> {
    /// The entries as rows.
    pub fn rows(&self, recorded_at: i64) -> Result<Vec<LogRow>, StoreError> {
        let row = |entry: &NewEntry<'_>| {
            let position = to_column("position", entry.position)?;
            Ok(LogRow::at(entry.experiment, position, entry.nonce, recorded_at, entry.event))
        };
        self.entries.iter().map(row).collect()
    }
}

/// The nonces that [`plan`] needs to look up for these events.
pub(super) fn nonces_of(
    events: &[(ExperimentId, NewEvent)],
) -> impl Iterator<Item = (ExperimentId, Nonce)> + '_ {
    events.iter().flat_map(|(experiment, new)| {
        std::iter::once(new.nonce).chain(new.superseded_by).map(move |nonce| (*experiment, nonce))
    })
}

/// Plan to append `events` to experiments with these `heads`, which are locked against other
/// writers and against changes of their records. `known` has the log entries that carry one of
/// [`nonces_of`] the events.
pub(super) fn plan<'a>(
    events: &'a [(ExperimentId, NewEvent)],
    heads: Vec<Head>,
    known: &'a [(ExperimentId, LogEntry)],
) -> AppendPlan<'a> {
    let mut heads: BTreeMap<_, _> = heads.into_iter().map(|head| (head.experiment, head)).collect();
    let mut seen: HashMap<(ExperimentId, Nonce), (u64, &Event)> =
        HashMap::with_capacity(events.len());
    for (experiment, entry) in known {
        seen.insert((*experiment, entry.nonce), (entry.position, &entry.event));
    }
    let mut entries = Vec::with_capacity(events.len());
    let mut results = Vec::with_capacity(events.len());
    let mut new_heads = BTreeMap::new();
    for (experiment, new) in events {
        let experiment = *experiment;
        let Some(head) = heads.get_mut(&experiment) else {
            results.push(Appended::Missing);
            continue;
        };
        let superseding = || {
            let by_nonce = new.superseded_by.and_then(|nonce| seen.get(&(experiment, nonce)));
            let beyond = new.follows.filter(|follows| head.head > *follows).map(|_| head.head);
            by_nonce.map(|(position, _)| *position).or(beyond)
        };
        results.push(match seen.get(&(experiment, new.nonce)) {
            Some((position, event)) if new.event.repeats(event) => Appended::Duplicate(*position),
            Some((position, _)) => Appended::Conflict(*position),
            None if head.archived => Appended::Archived,
            None => match superseding() {
                Some(position) => Appended::TooLate(position),
                None => {
                    head.head += 1;
                    let (position, nonce, event) = (head.head, new.nonce, &new.event);
                    seen.insert((experiment, nonce), (position, event));
                    entries.push(NewEntry { experiment, position, nonce, event });
                    new_heads.insert(experiment, position);
                    Appended::Recorded(position)
                }
            },
        });
    }
    AppendPlan { entries, heads: new_heads, results }
}
