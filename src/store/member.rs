//! What a database can do as one of several: say who it is, and give and take experiments.

use async_trait::async_trait;

use super::error::StoreError;
use super::{AuditNote, ExperimentId, ExperimentRecord, LogEntry, Snapshot, Store};

/// Identifies a database: random bytes that it got when its schema was made.
pub(super) type DatabaseId = [u8; 16];

/// Identifies a move of an experiment: random bytes.
pub(super) type MoveId = [u8; 16];

/// A database that is known to a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownMember {
    pub id: DatabaseId,
    /// Host and database, or path, when it joined.
    pub place: String,
}

/// What a database records of itself and its set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Membership {
    pub id: DatabaseId,
    /// The database with the keys of the set. `None`: this database has always served alone.
    pub keys: Option<KnownMember>,
    /// Grows with each change of the set.
    pub epoch: i64,
    /// The databases of the set, if this one has the keys.
    pub members: Vec<KnownMember>,
    /// Whether it has neither experiments nor keys.
    pub is_empty: bool,
}

/// What a database has of an experiment. See the migration `0015_presence.sql`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Here,
    Frozen,
    Arriving,
    Gone,
}

/// An experiment as one database has it, seen by others or not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Located {
    pub record: ExperimentRecord,
    pub presence: Presence,
    /// The move that it is part of.
    pub move_id: Option<MoveId>,
    /// Where it moves to, at the database that it leaves.
    pub moving_to: Option<DatabaseId>,
}

/// A database of a set.
///
/// The methods that move an experiment return whether they were allowed: `false` means that the
/// experiment is not in the state that the step needs, and that nothing was changed. Each is one
/// transaction and can be repeated.
#[async_trait]
pub(super) trait Member: Store {
    /// Host and database, or path: for messages, without a password.
    fn place(&self) -> &str;

    /// [`Database::check`](super::Database::check), also if it is one of several.
    async fn check_schema(&self) -> Result<(), StoreError>;

    async fn membership(&self) -> Result<Membership, StoreError>;

    /// Record the set. `members` is empty unless this database has the keys.
    async fn enter_set(
        &self,
        keys: &KnownMember,
        epoch: i64,
        members: &[KnownMember],
    ) -> Result<(), StoreError>;

    /// Create and import experiments only while the set has this epoch.
    fn expect_epoch(&self, epoch: i64);

    /// Whether it has or had the experiment with this name, or a part of it. Rows are never
    /// deleted, so the database in which an experiment was created always knows it.
    async fn knows(&self, name: &str) -> Result<bool, StoreError>;

    async fn located(&self, id: ExperimentId) -> Result<Option<Located>, StoreError>;

    /// Experiments that have gone, arrive or are frozen, by id, after `after`; at most `limit`.
    async fn not_here(
        &self,
        after: ExperimentId,
        limit: u32,
    ) -> Result<Vec<(ExperimentId, String, Presence)>, StoreError>;

    /// At the old database: begin the move, unless another one has begun.
    async fn begin_move(
        &self,
        id: ExperimentId,
        of: &MoveId,
        to: &DatabaseId,
    ) -> Result<bool, StoreError>;

    /// At the old database: accept no more events.
    async fn freeze(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError>;

    /// At the old database: give up a move that has not frozen the experiment. It never can then.
    async fn stay(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError>;

    /// At the old database: give up a move that has frozen the experiment, and accept events again.
    /// The new database must have turned it away.
    async fn thaw(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError>;

    /// At the old database: the experiment has moved, nobody sees it here.
    async fn leave(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError>;

    /// At the new database: make a row that log entries are copied to, with the log pruned up to
    /// `record.pruned_to`. What an earlier move left here must have been cleared.
    async fn expect(&self, record: &ExperimentRecord, of: &MoveId) -> Result<bool, StoreError>;

    /// At the new database: copy entries that follow position `after`, the head of the copy.
    async fn copy_entries(
        &self,
        id: ExperimentId,
        of: &MoveId,
        after: u64,
        entries: &[LogEntry],
    ) -> Result<bool, StoreError>;

    /// At the new database: copy a snapshot.
    async fn copy_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// At the new database: the copy is complete, with this record. From now on the experiment is
    /// here, and accepts events.
    async fn arrive(
        &self,
        record: &ExperimentRecord,
        of: &MoveId,
        audit: &AuditNote,
    ) -> Result<bool, StoreError>;

    /// At the new database: give up an arriving copy. This move can never arrive then.
    async fn turn_away(&self, id: ExperimentId, of: &MoveId) -> Result<bool, StoreError>;

    /// Delete the log and the snapshots of an experiment that has gone or was turned away.
    async fn clear(&self, id: ExperimentId) -> Result<(), StoreError>;
}

/// Refuse a database that is one of several, given alone.
pub(super) async fn require_alone(database: &dyn Member) -> Result<(), StoreError> {
    let Membership { id, keys, members, .. } = database.membership().await?;
    match keys {
        Some(keys) if keys.id != id => Err(StoreError::Set(format!(
            "{} is one of several databases, whose keys are in {}: give all of them with \
             --database-url",
            database.place(),
            keys.place
        ))),
        Some(_) if members.len() > 1 => {
            let places: Vec<_> = members.into_iter().map(|member| member.place).collect();
            Err(StoreError::Set(format!(
                "{} is one of {} databases: give all of them with --database-url: {}",
                database.place(),
                places.len(),
                places.join(", ")
            )))
        }
        _ => Ok(()),
    }
}
