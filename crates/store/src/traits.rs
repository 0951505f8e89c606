//! The traits of a store: one for each group of callers.
//!
//! A function takes the narrowest trait that it needs, for instance `&dyn ExperimentLog` to fold a
//! log or `Arc<dyn KeyStore>` to cache keys. A [`SharedStore`] coerces to each of them.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::StoreError;
use super::{
    ApiKeyRecord, AppendUnit, Appended, AuditNote, AuditPage, AuditRecord, Change, Changed,
    Created, Distributed, DueExperiment, ExperimentId, ExperimentRecord, Head, ListFilter,
    ListPlace, ListSize, ListedExperiment, LogEntry, NewAnswer, NewEvent, NewExperiment, Nonce,
    Notice, SessionId, SigningKey, Snapshot, WebhookNotice,
};

/// A whole store.
///
/// Implementations are cheap to share, safe to call from many tasks, and durable: a write that
/// returned `Ok` survives a crash of the program, of the database and of the machine.
pub trait Store: ExperimentLog + KeyStore + AuditLog + WebhookQueue + Database {}

impl<T: ExperimentLog + KeyStore + AuditLog + WebhookQueue + Database> Store for T {}

/// A store that is shared by the tasks of a process.
pub type SharedStore = Arc<dyn Store>;

/// Chunks of log entries for an import, or the reason why the rest is missing; the import is then
/// rolled back.
pub type EntryChunks<'a> = &'a mut (dyn Iterator<Item = Result<Vec<LogEntry>, String>> + Send);

/// Experiments: their records, logs and snapshots.
///
/// A log is append-only, dense and totally ordered, whichever process appends. To follow a log,
/// read it from the last known position and repeat after each [`Notice`] and at intervals:
///
/// ```no_run
/// # use rankduel_store::{ExperimentId, ExperimentLog, StoreError};
/// async fn follow(
///     store: &dyn ExperimentLog,
///     experiment: ExperimentId,
/// ) -> Result<(), StoreError> {
///     let mut position = 0;
///     loop {
///         let chunk = store.read(experiment, position, 1000).await?;
///         let Some(last) = chunk.last() else { return Ok(()) };
///         position = last.position;
///         // fold the chunk
///     }
/// }
/// ```
#[async_trait]
pub trait ExperimentLog: Send + Sync {
    /// Create an experiment, unless the name is taken (also by an archived experiment).
    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError>;

    /// The experiment with this name, archived or not.
    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError>;

    /// Experiments of a list, ordered by name, after `after` (empty: from the first); at most
    /// `limit`.
    async fn experiments(
        &self,
        filter: &ListFilter,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError>;

    /// Experiments of a list, ordered by group and name, after `after`; at most `limit`.
    async fn listed(
        &self,
        filter: &ListFilter,
        after: Option<&ListPlace>,
        limit: u32,
    ) -> Result<Vec<ListedExperiment>, StoreError>;

    /// How many experiments a list has, and how many up to `until`.
    async fn list_size(
        &self,
        filter: &ListFilter,
        until: Option<&ListPlace>,
    ) -> Result<ListSize, StoreError>;

    /// Experiments that are not archived and that were due at `now` (unix milliseconds), the
    /// earliest ones first, after `after`; at most `limit`.
    async fn due(
        &self,
        now: i64,
        after: Option<&DueExperiment>,
        limit: u32,
    ) -> Result<Vec<DueExperiment>, StoreError>;

    /// Names of all experiments, also of archived ones, in order, after `after` (empty: from the
    /// first); at most `limit`.
    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError>;

    /// Version and log head of each of these experiments. Unknown experiments are left out.
    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError>;

    /// Change the record of an experiment whose version is `expected_version`, and append `event`,
    /// which records the change, in one transaction. The experiment is due from then on, until its
    /// next answer is saved. `recorded_at` in unix milliseconds.
    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError>;

    /// Keep what holds at this log position, in place of the answer `before`, and queue the notice
    /// of it in the same transaction. The version and the log stay as they are. Returns `false`, and
    /// changes nothing, if another answer is stored, or one of a later position, or if somebody is
    /// writing to the experiment.
    async fn save_answer(
        &self,
        experiment: ExperimentId,
        position: u64,
        before: Option<&str>,
        answer: &NewAnswer,
        notice: Option<&WebhookNotice>,
    ) -> Result<bool, StoreError>;

    /// The unit of an experiment. Append the events of one unit together, and those of different
    /// units at the same time. The unit of an experiment can change while the database is
    /// distributed.
    fn append_unit(&self, _experiment: ExperimentId) -> AppendUnit {
        AppendUnit::default()
    }

    /// Append events, of any number of experiments. Those of one [`AppendUnit`] are appended in
    /// one transaction: all of them are kept or none. After an error, other units may have kept
    /// theirs. Returns one result for each event, in the order given.
    ///
    /// Each log stays dense and in the order given. A nonce counts once for each experiment, within
    /// the call and against the log. An event is too late once the log has the nonce of
    /// [`NewEvent::superseded_by`], or has gone on beyond [`NewEvent::follows`]. The result for a
    /// repeat is as durable as the result for a new event. `recorded_at` in unix milliseconds.
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

    /// The log entry under each of these nonces, in the order given. An entry that is found is as
    /// durable as one that was just appended.
    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError>;

    /// Keep a snapshot and delete older ones of the same experiment and format.
    ///
    /// Snapshots of other formats stay, so that the program before an upgrade still finds its own
    /// after a downgrade. A snapshot above the experiment's head belongs to a log that no longer
    /// exists: it is not kept, and is deleted if it is there.
    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// The newest snapshot of the experiment in this format.
    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError>;

    /// All snapshots of the experiment, in every format.
    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError>;

    /// Listen to commits, also of this process. `None` if the database sends no notifications. A
    /// notice can be lost, so a caller also polls [`ExperimentLog::heads`].
    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError>;

    /// Delete the log entries up to position `to` of a concluded or archived experiment that has a
    /// snapshot of `format` at or above `to`. Returns `false`, and changes nothing, if one of these
    /// conditions does not hold. One transaction marks the entries as pruned and writes the note.
    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError>;

    /// Add an experiment with its log, and the note, in one transaction. The `id` of `record` must be
    /// a new one, and its `head` the position of the last entry.
    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        chunks: EntryChunks<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Created, StoreError>;
}

/// Notices of commits.
#[async_trait]
pub trait Notices: Send {
    /// Wait for the next notice. `None`: some notices may be lost, because the connection broke and
    /// is back, or because the notice is not of a known form.
    async fn next(&mut self) -> Result<Option<Notice>, StoreError>;
}

/// The keys: those that duels are signed with, and those of callers.
///
/// Every change is written in one transaction with its note in the audit log.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Signing keys, the one with the latest `active_from` first.
    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError>;

    /// Add `key` if there is no signing key yet. Returns the keys, as [`KeyStore::signing_keys`].
    /// Any number of processes may call this at once.
    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError>;

    /// Add a signing key to the existing ones.
    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError>;

    /// Remove a signing key. Tokens signed with it are refused from then on. Returns whether the
    /// key existed; if not, nothing is noted.
    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError>;

    /// API keys by id, expired and revoked ones included.
    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Add an API key. With `ends`, the key `ends.0` expires at `ends.1` (unix milliseconds) unless
    /// it expires earlier.
    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError>;

    /// Revoke an API key from `at` on (unix milliseconds). Returns whether there was such a key
    /// that was not revoked; if not, nothing is noted.
    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError>;

    /// Set when these API keys were last used (unix milliseconds). A time earlier than the known
    /// one changes nothing. Writes no note.
    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError>;

    /// The sessions of the dashboard that were ended before their time.
    async fn ended_sessions(&self) -> Result<Vec<SessionId>, StoreError>;

    /// End a session that would expire at `expires_at`, and forget the ended ones that expired
    /// before `forget_before`. Ending it again changes nothing. Times in unix milliseconds.
    async fn end_session(
        &self,
        session: &SessionId,
        expires_at: i64,
        forget_before: i64,
    ) -> Result<(), StoreError>;
}

/// The audit log.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Entries before entry `before`, newest first, at most `limit`; of one experiment, if given.
    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError>;

    /// At most `limit` entries after the page that ended with entry `after`, newest first; of one
    /// experiment, if given. Entries that are added meanwhile do not move the pages.
    async fn audit_page(
        &self,
        experiment: Option<&str>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<AuditPage, StoreError> {
        let before = after.unwrap_or(i64::MAX);
        let mut records = self.audit(experiment, before, limit.saturating_add(1)).await?;
        let more = records.len() > limit as usize;
        records.truncate(limit as usize);
        let last = records.last().filter(|_| more).map(|last| last.id);
        Ok(AuditPage { records, next: last })
    }
}

/// Notices that wait for a webhook. [`ExperimentLog::save_answer`] adds them.
#[async_trait]
pub trait WebhookQueue: Send + Sync {
    /// Take the notice that is due for longest, of those that were tried before or of those that
    /// were not. Nobody else takes it before `until`. Times in unix milliseconds.
    async fn take_notice(
        &self,
        is_retry: bool,
        now: i64,
        until: i64,
    ) -> Result<Option<WebhookNotice>, StoreError>;

    /// Nobody takes the notice before `until` (unix milliseconds).
    async fn postpone_notice(&self, id: &str, until: i64) -> Result<(), StoreError>;

    /// Remove a notice. Removing it again changes nothing.
    async fn remove_notice(&self, id: &str) -> Result<(), StoreError>;

    /// The number of notices.
    async fn waiting_notices(&self) -> Result<u64, StoreError>;
}

/// The database as such.
#[async_trait]
pub trait Database: Send + Sync {
    /// The kind of database, for messages: `sqlite` or `postgres`.
    fn kind(&self) -> &'static str;

    /// Whether no other process may serve this store at the same time.
    fn serves_one_process(&self) -> bool;

    /// Claim the database for the server of this process, as long as the store exists: an SQLite
    /// file takes one server. From then on nothing is acknowledged while the file is not in its
    /// place.
    async fn claim(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Bring the schema up to date with this program.
    async fn migrate(&self) -> Result<(), StoreError>;

    /// Check that the database responds and that its schema matches this program.
    async fn check(&self) -> Result<(), StoreError>;

    /// Unix milliseconds of the clock that all processes on this database share; `None` if it has
    /// none of its own.
    async fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }

    /// Distribute the experiments over the nodes of the database. The schema must be that of this
    /// program. What is distributed already stays as it is.
    async fn distribute(&self) -> Result<Distributed, StoreError> {
        Err(StoreError::Distribution(format!(
            "it is a {} database; only PostgreSQL with the extension citus has several nodes",
            self.kind()
        )))
    }

    /// Damage that the database itself finds in its files. Empty if it finds none or cannot check.
    async fn integrity(&self) -> Result<Vec<String>, StoreError>;

    /// The number of answers that were refused because they belong to another question.
    fn foreign_answers(&self) -> u64 {
        0
    }

    /// Close the connections once the running statements are done.
    async fn close(&self);
}
