//! The append-only log and the databases that hold it.
//!
//! One narrow trait, in the language of the use cases. `sqlite.rs` and `postgres.rs` implement it;
//! one contract suite (`tests/storage/store_contract`) runs on both. Nothing here knows what an event
//! means to a policy.

use std::sync::Arc;

use async_trait::async_trait;

mod access;
mod append;
mod connect;
mod copied;
mod error;
pub mod postgres;
pub mod record;
mod row;
mod schema;
pub mod sqlite;

pub use access::{ApiKeyRecord, AuditNote, AuditRecord};
pub use connect::{ConnectError, connect};
pub use record::*;

/// Why the store did not do what was asked. A message holds its cause's, so that none is printed
/// twice.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is read-only, full, shutting down or too slow. Whether a
    /// write that failed so was kept is not known; doing it again is safe, because everything that
    /// is appended carries a nonce.
    #[error("the database is unavailable: {0}")]
    Unavailable(sqlx::Error),
    /// The database did not answer in time; as with [`StoreError::Unavailable`], doing it again is
    /// safe.
    #[error("the database did not answer within {0:?}")]
    Slow(std::time::Duration),
    /// The schema is older or newer than this program's.
    #[error("the database schema is not this program's: {0}")]
    Schema(String),
    /// A row that this program cannot have written, named.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
    /// A defect: the statement itself was refused.
    #[error("the database refused a statement: {0}")]
    Refused(sqlx::Error),
}

/// Longest that a read of the work in the background waits: no request's time limit ends it.
const READ_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// The answer of `call`, given up on after 10 seconds.
pub async fn in_time<T>(
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(READ_WITHIN, call).await.unwrap_or(Err(StoreError::Slow(READ_WITHIN)))
}

/// What came of [`Store::create_experiment`].
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It is new.
    New(ExperimentRecord),
    /// The name was taken; this is the experiment that has it. Nothing was changed.
    Taken(ExperimentRecord),
}

/// What came of [`Store::change_experiment`].
#[derive(Debug, Clone, PartialEq)]
pub enum Changed {
    /// Done; the record after it.
    Done(ExperimentRecord),
    /// The record's version is not the expected one; the record as it is. Nothing was changed.
    Stale(ExperimentRecord),
    /// There is no such experiment.
    Missing,
}

/// What came of one appended event, in the order they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It is in the log at this position, durably.
    Recorded(u64),
    /// The same event with this nonce was in the log already, at this position.
    Duplicate(u64),
    /// Another event with this nonce is in the log, at this position; that one stands.
    Conflict(u64),
    /// What [`NewEvent::superseded_by`] names is in the log, at this position: the event was not
    /// appended.
    TooLate(u64),
    /// The experiment is archived, whichever process did that: it was not appended.
    Archived,
    /// The experiment does not exist.
    Missing,
}

/// What came of [`Store::import`].
#[derive(Debug, Clone, PartialEq)]
pub enum Imported {
    /// It is there now.
    New(ExperimentRecord),
    /// The name is taken. Nothing was changed.
    Taken(ExperimentRecord),
}

/// Pages of log entries that an import takes, or why there are no more; the import is then undone.
pub type Pages<'a> = &'a mut (dyn Iterator<Item = Result<Vec<LogEntry>, String>> + Send);

/// What other processes commit, as the database tells it.
#[async_trait]
pub trait Notices: Send {
    /// Wait for the next notice. `None`: the connection was lost and is back, and what was told
    /// meanwhile is not known.
    async fn next(&mut self) -> Result<Option<Notice>, StoreError>;
}

/// The log of every experiment, their records, snapshots and signing keys.
///
/// Implementations are cheap to share, safe to call from many tasks, and durable: a write that
/// returned `Ok` survives a crash of the program, of the database and of the machine.
#[async_trait]
pub trait Store: Send + Sync {
    /// Which database this is, for messages: `sqlite` or `postgres`.
    fn kind(&self) -> &'static str;

    /// Bring the schema up to this program's.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// Whether the database answers and its schema is exactly this program's.
    async fn check(&self) -> Result<(), StoreError>;

    /// Create an experiment, or find that the name is taken (also by an archived one).
    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError>;

    /// The experiment with this name, archived or not.
    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError>;

    /// Experiments that are not archived, by name, after `after`; at most `limit`.
    async fn experiments(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError>;

    /// Version and log head of each of these experiments; an unknown one is left out.
    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError>;

    /// Change status, winner or archival of an experiment whose version is `expected_version`, and
    /// append the event that says so, in one transaction. `recorded_at` in unix milliseconds.
    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError>;

    /// Append events, of any number of experiments, in one transaction: all or nothing is kept.
    /// Each experiment's log stays dense and in the order given. A nonce counts once per
    /// experiment, within the call and against the log, and an event is too late once there is what
    /// [`NewEvent::superseded_by`] names. What is answered for a repeat is as durable as what is
    /// answered for a new event. `recorded_at` in unix milliseconds.
    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError>;

    /// Log entries after position `after`, in order, at most `limit`.
    async fn read(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError>;

    /// What the log holds under each of these nonces, in the order given. What is found is as
    /// durable as what was just appended.
    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError>;

    /// Keep a snapshot. Older ones of the experiment in the same format go; those of another format
    /// stay, so that the program before an upgrade still has one if it must come back. A snapshot
    /// above the experiment's head is of a log that is gone: it is not kept, and goes if it is
    /// there.
    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// The newest snapshot of the experiment whose `format` is the given one.
    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError>;

    /// Every snapshot of the experiment, of whatever format.
    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError>;

    /// Listen to what other processes commit. `None` where the database does not tell; what this
    /// store itself commits is left out. A notice can be lost: whoever follows a log also asks for
    /// [`Store::heads`].
    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError>;

    /// Names of all experiments, archived ones too, after `after` (empty: from the first), in their
    /// order; at most `limit`.
    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError>;

    /// Forget the log entries of a concluded or archived experiment up to position `to`, for which
    /// there must be a snapshot of `format` at or above it. `false`, and nothing is changed, where
    /// one of these does not hold. The note is written in one transaction with what says that the
    /// entries are gone.
    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError>;

    /// Bring in an experiment with its log, and the note, in one transaction. Its number in
    /// `record` does not matter; `record.head` must be the position of the last entry.
    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        pages: Pages<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Imported, StoreError>;

    /// What the database itself finds wrong with its files; empty where it finds nothing or cannot
    /// look.
    async fn integrity(&self) -> Result<Vec<String>, StoreError>;

    /// Signing keys, those that sign from the latest time on first.
    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError>;

    /// Add `key` if there is none yet; the keys after that, as [`Store::signing_keys`]. Any number
    /// of processes may race.
    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError>;

    /// Add a key beside those that are there, in one transaction with the note.
    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError>;

    /// Remove a key, in one transaction with the note; whether it was there. What it has signed is
    /// refused from then on. If it was not there, nothing is noted.
    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError>;

    /// API keys, those that have ended too, by id.
    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Add an API key, and let the key `ends.0` end at `ends.1` (unix milliseconds) if it would not
    /// end before, in one transaction with the note.
    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError>;

    /// Revoke an API key from `at` on (unix milliseconds), in one transaction with the note;
    /// whether there was such a key that was not revoked. If not, nothing is noted.
    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError>;

    /// Keys, and when they were last used (unix milliseconds). An earlier time than the known one
    /// changes nothing.
    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError>;

    /// Add to the audit log. A note with a `once` that is there already is passed over.
    async fn add_audit(&self, notes: &[AuditNote]) -> Result<(), StoreError>;

    /// Entries of the audit log before entry `before`, newest first, at most `limit`; of one
    /// experiment, if it is given.
    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError>;

    /// Close connections after the running statements.
    async fn close(&self);
}

/// A store as it is shared.
pub type SharedStore = Arc<dyn Store>;
