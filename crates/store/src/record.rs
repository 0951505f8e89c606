//! Experiments, log entries and snapshots, as callers of a store see them.

use super::AuditNote;
use crate::events::{Event, Status};

/// An experiment's number, drawn when it is created
/// ([`entropy::experiment_id`](super::entropy::experiment_id)). An experiment that is lost and
/// created again has another one, so nothing of the one counts for the other.
pub type ExperimentId = i64;

/// Identifies an event once and for all: a repeat carries the same nonce. 128 bits.
pub type Nonce = u128;

/// Nonce of the first entry of each log, which creates the experiment. No process has its high
/// half.
pub const CREATION: Nonce = (u64::MAX as Nonce - 6) << 64;

/// An experiment as the database has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRecord {
    /// Its number.
    pub id: ExperimentId,
    /// Its name. A name is never used again.
    pub name: String,
    /// Its specification as canonical JSON: what its log folds to. The store reads the owner alone.
    pub spec: String,
    /// Seed of every random draw of the fold.
    pub seed: u64,
    /// Running, paused or concluded.
    pub status: Status,
    /// Index of the winner, if it was concluded with one.
    pub winner: Option<u16>,
    /// Counts the changes of this record, from 1.
    pub version: u64,
    /// Position of the newest log entry. The first one, at position 1, is the creation.
    pub head: u64,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds of the newest change of this record (not of its log).
    pub updated_at: i64,
    /// Unix milliseconds. Archived experiments are not listed; their log is kept.
    pub archived_at: Option<i64>,
    /// Log entries up to this position were pruned; 0 while the log is whole.
    pub pruned_to: u64,
    /// The answer that a server has found, as JSON. Opaque to the store.
    pub answer: Option<String>,
}

/// The answer that a server has found, for
/// [`ExperimentLog::save_answer`](super::ExperimentLog::save_answer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnswer {
    /// JSON, opaque to the store.
    pub text: String,
    /// The name of its state.
    pub state: String,
    /// The group of the list that it belongs to: below [`LIST_GROUPS`], the first one first.
    pub group: u8,
    /// Unix milliseconds at which a server has to look again; `None`: only after a change.
    pub due_at: Option<i64>,
}

/// The groups of the list.
pub const LIST_GROUPS: usize = 4;

/// The experiments that a list has, of those that are not archived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListFilter {
    /// Those whose name or owner contains this text; the case of A to Z does not matter.
    pub search: Option<String>,
    /// Those whose answer has one of these states, or whose status is one of them.
    pub states: Option<Vec<String>>,
    /// Those with one of these names.
    pub names: Option<Vec<String>>,
    /// Those whose spec contains this text.
    pub spec_with: &'static str,
}

/// The place of an experiment in a list by groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPlace {
    /// Its group.
    pub group: u8,
    /// Its name; empty before the first one of the group.
    pub name: String,
}

/// A row of the list by groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedExperiment {
    /// The number of the experiment.
    pub id: ExperimentId,
    /// Where it stands.
    pub place: ListPlace,
    /// Who is responsible for it.
    pub owner: Option<String>,
    /// Running, paused or concluded.
    pub status: Status,
    /// Unix milliseconds of the newest change.
    pub updated_at: i64,
    /// The stored answer.
    pub answer: Option<String>,
}

/// How many experiments a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListSize {
    /// Those of each group.
    pub groups: [u64; LIST_GROUPS],
    /// Those up to the place that was asked for.
    pub before: u64,
}

impl ListSize {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.groups.iter().sum()
    }
}

/// An experiment that a server has to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueExperiment {
    /// Its number.
    pub id: ExperimentId,
    /// Its name.
    pub name: String,
    /// Unix milliseconds.
    pub due_at: i64,
}

/// The input of [`ExperimentLog::create_experiment`](super::ExperimentLog::create_experiment).
#[derive(Debug, Clone, PartialEq)]
pub struct NewExperiment {
    /// Its number.
    pub id: ExperimentId,
    /// Its name.
    pub name: String,
    /// Its specification as canonical JSON.
    pub spec: String,
    /// Seed of every random draw of the fold.
    pub seed: u64,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Written to the audit log if the experiment is new.
    pub audit: Option<AuditNote>,
}

/// A change of an experiment's record; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// New status.
    pub status: Option<Status>,
    /// New winner: `Some(None)` removes it.
    pub winner: Option<Option<u16>>,
    /// Archive at this time, unix milliseconds.
    pub archived_at: Option<i64>,
    /// Written to the audit log.
    pub audit: Option<AuditNote>,
    /// New specification, as canonical JSON.
    pub spec: Option<String>,
}

impl Change {
    /// The record after this change. The change itself is the record's next log entry.
    pub fn applied_to(&self, before: &ExperimentRecord, now: i64) -> ExperimentRecord {
        ExperimentRecord {
            status: self.status.unwrap_or(before.status),
            winner: self.winner.unwrap_or(before.winner),
            archived_at: self.archived_at.or(before.archived_at),
            spec: self.spec.clone().unwrap_or_else(|| before.spec.clone()),
            version: before.version + 1,
            head: before.head + 1,
            updated_at: now,
            ..before.clone()
        }
    }
}

/// Version and log head of an experiment, for replicas that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Version of its record.
    pub version: u64,
    /// Position of its newest log entry.
    pub head: u64,
    /// Whether it is archived: nothing can be appended to its log.
    pub archived: bool,
}

/// A notice that waits for a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookNotice {
    /// Identifies it for the receiver, at every attempt.
    pub id: String,
    /// Name of the experiment that it is about.
    pub experiment: String,
    /// JSON, opaque to the store.
    pub body: String,
    /// Unix milliseconds.
    pub queued_at: i64,
    /// The attempts that were begun.
    pub attempts: u32,
}

/// A notification by the database that a log has grown. Notices can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The experiment whose log has grown.
    pub experiment: ExperimentId,
    /// Position of its newest entry at that time.
    pub head: u64,
}

/// Experiments whose events are appended in one transaction. Different units commit and fail on
/// their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AppendUnit {
    /// All experiments of the database.
    #[default]
    Whole,
    /// This experiment alone.
    Experiment(ExperimentId),
}

/// An event to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Identifies the event.
    pub nonce: Nonce,
    /// The event.
    pub event: Event,
    /// The event is refused ([`Appended::TooLate`]) once the log has an entry with this nonce.
    pub superseded_by: Option<Nonce>,
    /// The event was decided on the log up to this position, and is refused
    /// ([`Appended::TooLate`]) once the log goes on beyond it.
    pub follows: Option<u64>,
}

impl NewEvent {
    /// An event that no other event supersedes.
    pub fn new(nonce: Nonce, event: Event) -> Self {
        Self { nonce, event, superseded_by: None, follows: None }
    }

    /// Whether it depends on the log, beside its nonce, if it is appended.
    pub(crate) fn is_conditional(&self) -> bool {
        self.superseded_by.is_some() || self.follows.is_some()
    }
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// 1, 2, 3, … without a gap.
    pub position: u64,
    /// Identifies the event.
    pub nonce: Nonce,
    /// Unix milliseconds at which it was appended.
    pub recorded_at: i64,
    /// The event.
    pub event: Event,
}

/// A fold's state at a log position. It is a cache: losing it makes the next start slower, and
/// loses no outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Log position of the state.
    pub position: u64,
    /// Layout of the bytes; a snapshot of another layout is not read.
    pub format: u32,
    /// The state.
    pub state: Vec<u8>,
    /// Unix milliseconds.
    pub created_at: i64,
}

/// Result of [`ExperimentLog::create_experiment`](super::ExperimentLog::create_experiment) and of
/// [`ExperimentLog::import`](super::ExperimentLog::import).
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// The new experiment.
    New(ExperimentRecord),
    /// The experiment that already has the name. Nothing was changed.
    Taken(ExperimentRecord),
}

/// Result of [`ExperimentLog::change_experiment`](super::ExperimentLog::change_experiment).
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// The record after the change.
    Done(ExperimentRecord),
    /// The current record, whose version is not the expected one. Nothing was changed.
    Stale(ExperimentRecord),
    /// The experiment does not exist.
    Missing,
}

/// Result of appending one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is in the log at this position, durably.
    Recorded(u64),
    /// The log already had the same event with this nonce, at this position.
    Duplicate(u64),
    /// The log has a different event with this nonce, at this position; that one stands.
    Conflict(u64),
    /// The log has the nonce of [`NewEvent::superseded_by`], at this position, or ends here, beyond
    /// [`NewEvent::follows`]. The event was not appended.
    TooLate(u64),
    /// The experiment is archived, by this or another process. The event was not appended.
    Archived,
    /// The experiment does not exist.
    Missing,
}

/// Result of [`Database::distribute`](super::Database::distribute).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distributed {
    /// Whether a table was not distributed before.
    pub newly: bool,
    /// The nodes that hold experiments.
    pub nodes: i64,
}
