//! Which events of an append become log entries, and at which positions. Decided here, once, for
//! both databases.

use std::collections::{BTreeMap, HashMap};

use super::{Appended, Event, ExperimentId, Head, LogEntry, NewEvent, Nonce};

/// What an append writes, and what it answers.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// The new log entries.
    pub entries: Vec<(ExperimentId, u64, &'a NewEvent)>,
    /// The experiments that get new entries, and their heads after it.
    pub heads: BTreeMap<ExperimentId, u64>,
    /// One answer an event, in the order given.
    pub answers: Vec<Appended>,
}

/// The nonces that an append of these events has to know of.
pub(super) fn nonces_of(
    events: &[(ExperimentId, NewEvent)],
) -> impl Iterator<Item = (ExperimentId, Nonce)> + '_ {
    events.iter().flat_map(|(experiment, new)| {
        std::iter::once(new.nonce).chain(new.superseded_by()).map(move |nonce| (*experiment, nonce))
    })
}

/// Plan to append `events` to experiments with these `heads`, locked against other writers and
/// against changes of their records. `known` holds the entries of these logs that carry one of
/// [`nonces_of`] them.
pub(super) fn plan<'a>(
    events: &'a [(ExperimentId, NewEvent)],
    heads: Vec<Head>,
    known: &'a [(ExperimentId, LogEntry)],
) -> Plan<'a> {
    let mut heads: BTreeMap<_, _> = heads.into_iter().map(|head| (head.experiment, head)).collect();
    let mut seen: HashMap<(ExperimentId, Nonce), (u64, &Event)> =
        HashMap::with_capacity(events.len());
    for (experiment, entry) in known {
        seen.insert((*experiment, entry.nonce), (entry.position, &entry.event));
    }
    let mut entries = Vec::with_capacity(events.len());
    let mut answers = Vec::with_capacity(events.len());
    let mut changed = BTreeMap::new();
    for (experiment, new) in events {
        let Some(head) = heads.get_mut(experiment) else {
            answers.push(Appended::Missing);
            continue;
        };
        answers.push(match seen.get(&(*experiment, new.nonce)) {
            Some((position, event)) if **event == new.event => Appended::Duplicate(*position),
            Some((position, _)) => Appended::Conflict(*position),
            None if head.archived => Appended::Archived,
            None => match new.superseded_by().and_then(|nonce| seen.get(&(*experiment, nonce))) {
                Some((position, _)) => Appended::TooLate(*position),
                None => {
                    head.head += 1;
                    seen.insert((*experiment, new.nonce), (head.head, &new.event));
                    entries.push((*experiment, head.head, new));
                    changed.insert(*experiment, head.head);
                    Appended::Recorded(head.head)
                }
            },
        });
    }
    Plan { entries, heads: changed, answers }
}
