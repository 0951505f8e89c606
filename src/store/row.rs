//! Rows as both databases have them, to and from records.
//!
//! Unsigned 64-bit numbers whose every bit counts (seed, ticket, the position a token claims) are
//! kept as the signed number with the same bits. Those that a database counts or compares
//! (positions, versions) are checked instead: they start at 0 and never reach 2^63.

use std::collections::HashMap;

use sqlx::FromRow;
use sqlx::types::Uuid;

use super::{
    ControlEvent, Event, ExperimentId, ExperimentRecord, Head, LogEntry, Nonce, OutcomeEvent,
};
use super::{SigningKey, Snapshot, Status, StoreError};
use dueling_bandits::Answer;

/// The columns of [`ExperimentRow`], for a `select` or a `returning`.
macro_rules! experiment_columns {
    () => {
        "id, name, spec, seed, status, winner, version, head, created_at_ms, updated_at_ms, archived_at_ms, pruned_to, \
         interleaving"
    };
}
/// The columns of [`LogRow`].
macro_rules! log_columns {
    () => {
        "experiment_id, position, nonce, recorded_at_ms, kind, first_ranker, second_ranker, first_left, answer, \
         batch, ticket, chosen_at, issued_at_ms, detail"
    };
}
pub(super) use {experiment_columns, log_columns};

/// The statements that read alike in both databases.
pub(super) mod sql {
    pub const EXPERIMENT: &str =
        concat!("select ", experiment_columns!(), " from experiment where name = $1");
    pub const EXPERIMENTS: &str = concat!(
        "select ",
        experiment_columns!(),
        " from experiment where archived_at_ms is null order by name limit $1"
    );
    pub const EXPERIMENTS_AFTER: &str = concat!(
        "select ",
        experiment_columns!(),
        " from experiment where archived_at_ms is null and name > $1 order by name limit $2"
    );
    pub const CREATE_EXPERIMENT: &str = concat!(
        "insert into experiment (name, spec, seed, status, version, head, created_at_ms, updated_at_ms)
         values ($1, $2, $3, 'running', 1, 0, $4, $4) on conflict (name) do nothing returning ",
        experiment_columns!()
    );
    /// `version` is the one before the change: a row that has moved on is not touched.
    pub const CHANGE_EXPERIMENT: &str = "update experiment
         set status = $1, winner = $2, archived_at_ms = $3, updated_at_ms = $4, interleaving = $7, spec = $8, version = version + 1,
             head = head + 1
         where id = $5 and version = $6";
    pub const READ: &str = concat!(
        "select ",
        log_columns!(),
        " from log where experiment_id = $1 and position > $2 order by position limit $3"
    );
    pub const SAVE_SNAPSHOT: &str =
        "insert into snapshot (experiment_id, format, position, state, created_at_ms)
         select $1, $2, $3, $4, $5 where exists (select 1 from experiment where id = $1 and head >= $3)
         on conflict (experiment_id, format, position) do update
         set state = excluded.state, created_at_ms = excluded.created_at_ms";
    pub const FORGET_SNAPSHOTS: &str =
        "delete from snapshot where experiment_id = $1 and format = $2 and exists (
            select 1 from experiment
            where id = $1 and (snapshot.position > head or (snapshot.position < $3 and $3 <= head))
         )";
    pub const NEWEST_SNAPSHOT: &str =
        "select experiment_id, format, position, state, created_at_ms from snapshot
         where experiment_id = $1 and format = $2 order by position desc limit 1";
    pub const SIGNING_KEYS: &str =
        "select id, secret, created_at_ms, active_from_ms from signing_key
         order by active_from_ms desc, created_at_ms desc, id desc";
    pub const ENSURE_SIGNING_KEY: &str =
        "insert into signing_key (id, secret, created_at_ms, active_from_ms)
         select $1, $2, $3, $4 where not exists (select 1 from signing_key)";
    pub const ADD_SIGNING_KEY: &str = "insert into signing_key (id, secret, created_at_ms, active_from_ms) values ($1, $2, $3, $4)";
    pub const REMOVE_SIGNING_KEY: &str = "delete from signing_key where id = $1";
    pub const MIGRATIONS: &str = "select version, checksum, description from _sqlx_migrations where success order by version";
    /// Every name, archived or not.
    pub const NAMES: &str = "select name from experiment where name > $1 order by name limit $2";
    pub const SNAPSHOTS: &str =
        "select experiment_id, format, position, state, created_at_ms from snapshot
         where experiment_id = $1 order by format, position";
    /// The guard is looked at again here: what was decided before the lock may have changed.
    pub const PRUNE: &str = "update experiment set pruned_to = $2
         where id = $1 and pruned_to <= $2 and head >= $2 and (status = 'concluded' or archived_at_ms is not null)
           and exists (select 1 from snapshot where experiment_id = $1 and format = $3 and position >= $2)";
    pub const FIRST_ENTRY: &str =
        "select position from log where experiment_id = $1 order by position limit 1";
    pub const FORGET_ENTRIES: &str = "delete from log where experiment_id = $1 and position <= $2";
    pub const IMPORT_EXPERIMENT: &str = concat!(
        "insert into experiment (name, spec, seed, status, winner, version, head, created_at_ms, updated_at_ms,
                                 archived_at_ms, pruned_to, interleaving)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (name) do nothing returning ",
        experiment_columns!()
    );
}

/// An unsigned number that a database counts or compares, as it keeps it.
pub(super) fn counted(what: &str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| {
        StoreError::Refused(sqlx::Error::Encode(
            format!("{what} {value} is beyond 2^63 - 1").into(),
        ))
    })
}

/// The way back of [`counted`].
fn count(what: &str, value: i64) -> Result<u64, StoreError> {
    narrowed(what, value)
}

/// A number in the width that it must have.
fn narrowed<T: TryFrom<i64>>(what: &str, value: i64) -> Result<T, StoreError> {
    T::try_from(value).map_err(|_| StoreError::Corrupt(format!("{what} is {value}")))
}

/// The name of a status in its column.
pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Paused => "paused",
        Status::Concluded => "concluded",
    }
}

/// A row of `experiment`.
#[derive(Debug, FromRow)]
pub(super) struct ExperimentRow {
    pub id: i64,
    name: String,
    spec: String,
    seed: i64,
    status: String,
    winner: Option<i32>,
    version: i64,
    pub head: i64,
    created_at_ms: i64,
    updated_at_ms: i64,
    archived_at_ms: Option<i64>,
    pruned_to: i64,
    interleaving: Option<String>,
}

impl TryFrom<ExperimentRow> for ExperimentRecord {
    type Error = StoreError;

    fn try_from(row: ExperimentRow) -> Result<Self, StoreError> {
        let of = |what: &str| format!("{what} of experiment {}", row.id);
        let status = match row.status.as_str() {
            "running" => Status::Running,
            "paused" => Status::Paused,
            "concluded" => Status::Concluded,
            other => return Err(StoreError::Corrupt(format!("{} is {other:?}", of("status")))),
        };
        Ok(Self {
            status,
            winner: row.winner.map(|winner| narrowed(&of("winner"), winner.into())).transpose()?,
            version: count(&of("version"), row.version)?,
            head: count(&of("head"), row.head)?,
            pruned_to: count(&of("pruned_to"), row.pruned_to)?,
            id: row.id,
            name: row.name,
            spec: row.spec,
            seed: row.seed.cast_unsigned(),
            created_at: row.created_at_ms,
            updated_at: row.updated_at_ms,
            archived_at: row.archived_at_ms,
            interleaving: row.interleaving,
        })
    }
}

/// Version and head of an experiment.
#[derive(Debug, FromRow)]
pub(super) struct HeadRow {
    pub id: i64,
    version: i64,
    head: i64,
    archived: bool,
}

impl TryFrom<HeadRow> for Head {
    type Error = StoreError;

    fn try_from(row: HeadRow) -> Result<Self, StoreError> {
        Ok(Self {
            experiment: row.id,
            version: count("version of an experiment", row.version)?,
            head: count("head of an experiment", row.head)?,
            archived: row.archived,
        })
    }
}

const OUTCOME: i16 = 0;
const OTHER: i16 = 1;

/// An event as the columns of `log` that say what happened.
#[derive(Debug, Default, FromRow)]
pub(super) struct EventColumns {
    pub kind: i16,
    pub first_ranker: Option<i32>,
    pub second_ranker: Option<i32>,
    pub first_left: Option<bool>,
    pub answer: Option<i16>,
    pub batch: Option<i64>,
    pub ticket: Option<i64>,
    pub chosen_at: Option<i64>,
    pub issued_at_ms: Option<i64>,
    pub detail: Option<String>,
}

impl From<&Event> for EventColumns {
    fn from(event: &Event) -> Self {
        match event {
            Event::Outcome(outcome) => Self {
                kind: OUTCOME,
                first_ranker: Some(outcome.first.into()),
                second_ranker: Some(outcome.second.into()),
                first_left: Some(outcome.first_left),
                answer: Some(match outcome.answer {
                    Answer::First => 0,
                    Answer::Second => 1,
                    Answer::Tie => 2,
                    Answer::None => 3,
                }),
                batch: outcome.batch.map(i64::from),
                ticket: Some(outcome.ticket.cast_signed()),
                chosen_at: Some(outcome.chosen_at.cast_signed()),
                issued_at_ms: Some(outcome.issued_at),
                detail: None,
            },
            Event::Control(other) => Self {
                kind: OTHER,
                detail: Some(
                    serde_json::to_string(other)
                        .expect("numbers, lists and names always serialise"),
                ),
                ..Self::default()
            },
        }
    }
}

impl EventColumns {
    /// The event, or what is wrong with it.
    fn event(self) -> Result<Event, String> {
        match self.kind {
            OUTCOME => self.outcome().map(Event::Outcome),
            OTHER => {
                let detail = self.detail.ok_or("it has no detail")?;
                serde_json::from_str::<ControlEvent>(&detail)
                    .map(Event::Control)
                    .map_err(|error| error.to_string())
            }
            kind => Err(format!("its kind is {kind}: was it written by a newer program?")),
        }
    }

    fn outcome(&self) -> Result<OutcomeEvent, String> {
        fn there<T>(name: &str, value: Option<T>) -> Result<T, String> {
            value.ok_or_else(|| format!("it has no {name}"))
        }
        fn fits<T: TryFrom<i64>>(name: &str, value: i64) -> Result<T, String> {
            T::try_from(value).map_err(|_| format!("its {name} is {value}"))
        }
        let ranker = |name, value: Option<i32>| fits(name, there(name, value)?.into());
        Ok(OutcomeEvent {
            first: ranker("first_ranker", self.first_ranker)?,
            second: ranker("second_ranker", self.second_ranker)?,
            first_left: there("first_left", self.first_left)?,
            answer: match there("answer", self.answer)? {
                0 => Answer::First,
                1 => Answer::Second,
                2 => Answer::Tie,
                3 => Answer::None,
                other => return Err(format!("its answer is {other}")),
            },
            batch: self.batch.map(|batch| fits("batch", batch)).transpose()?,
            ticket: there("ticket", self.ticket)?.cast_unsigned(),
            chosen_at: there("chosen_at", self.chosen_at)?.cast_unsigned(),
            issued_at: there("issued_at_ms", self.issued_at_ms)?,
        })
    }
}

/// A row of `log`.
#[derive(Debug, FromRow)]
pub(super) struct LogRow {
    pub experiment_id: i64,
    pub position: i64,
    pub nonce: Uuid,
    pub recorded_at_ms: i64,
    #[sqlx(flatten)]
    pub event: EventColumns,
}

impl TryFrom<LogRow> for LogEntry {
    type Error = StoreError;

    fn try_from(row: LogRow) -> Result<Self, StoreError> {
        let position = count("position of a log entry", row.position)?;
        let event = row.event.event().map_err(|wrong| {
            StoreError::Corrupt(format!(
                "log entry {position} of experiment {}: {wrong}",
                row.experiment_id
            ))
        })?;
        Ok(Self { position, nonce: row.nonce.as_u128(), recorded_at: row.recorded_at_ms, event })
    }
}

/// A row of `snapshot`.
#[derive(Debug, FromRow)]
pub(super) struct SnapshotRow {
    experiment_id: i64,
    format: i64,
    position: i64,
    state: Vec<u8>,
    created_at_ms: i64,
}

impl TryFrom<SnapshotRow> for Snapshot {
    type Error = StoreError;

    fn try_from(row: SnapshotRow) -> Result<Self, StoreError> {
        Ok(Self {
            experiment: row.experiment_id,
            position: count("position of a snapshot", row.position)?,
            format: narrowed("format of a snapshot", row.format)?,
            state: row.state,
            created_at: row.created_at_ms,
        })
    }
}

/// A row of `signing_key`.
#[derive(FromRow)]
pub(super) struct SigningKeyRow {
    id: i64,
    secret: Vec<u8>,
    created_at_ms: i64,
    active_from_ms: i64,
}

impl TryFrom<SigningKeyRow> for SigningKey {
    type Error = StoreError;

    fn try_from(row: SigningKeyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: narrowed("id of a signing key", row.id)?,
            secret: row.secret.try_into().map_err(|secret: Vec<u8>| {
                StoreError::Corrupt(format!(
                    "signing key {} has {} bytes, not 32",
                    row.id,
                    secret.len()
                ))
            })?,
            created_at: row.created_at_ms,
            active_from: row.active_from_ms,
        })
    }
}

/// Records from rows.
pub(super) fn records<Row, Record>(rows: Vec<Row>) -> Result<Vec<Record>, StoreError>
where
    Record: TryFrom<Row, Error = StoreError>,
{
    rows.into_iter().map(Record::try_from).collect()
}

/// For each nonce the entry that carries it.
pub(super) fn in_order_of(
    nonces: &[Nonce],
    entries: Vec<(ExperimentId, LogEntry)>,
) -> Vec<Option<LogEntry>> {
    let by_nonce: HashMap<Nonce, LogEntry> =
        entries.into_iter().map(|(_, entry)| (entry.nonce, entry)).collect();
    nonces.iter().map(|nonce| by_nonce.get(nonce).cloned()).collect()
}

/// The numbers of experiments, each once, ascending: the order in which they are locked.
pub(super) fn ascending(experiments: impl Iterator<Item = ExperimentId>) -> Vec<ExperimentId> {
    let mut ids: Vec<_> = experiments.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
