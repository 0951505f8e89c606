//! Reads and writes of logs in PostgreSQL's own SQL.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use sqlx::Arguments as _;
use sqlx::postgres::PgArguments;
use sqlx::types::Uuid;

use super::copy;
use super::pool_mode::{PgTransaction, SingleStatements};
use super::store::PostgresStore;
use crate::events::Event;
use crate::store::append_plan::{NewEntry, copied};
use crate::store::sql::log_row::{EventColumns, LogRow, in_order_of};
use crate::store::sql::numbers::to_column;
use crate::store::sql::rows::{HeadRow, ascending, records};
use crate::store::sql::statements::{is_present, log_columns};
use crate::store::{ExperimentId, Head, LogEntry, NewEvent, Nonce, StoreError};

/// From this many entries on, a copy is cheaper than a statement although it takes more round
/// trips.
pub(super) const COPY_FROM: usize = 256;

macro_rules! select_heads {
    () => {
        concat!(
            "select id, version, head, archived_at_ms is not null as archived,
                 presence = 'frozen' as frozen
             from experiment where id = any($1) and ",
            is_present!(),
            " order by id"
        )
    };
}
const HEADS: &str = select_heads!();

/// Locks rows in the order of the result. `no key`: rows that only refer to an experiment do not
/// wait.
const LOCK_HEADS: &str = concat!(select_heads!(), " for no key update");

/// `offset 0` keeps the planner from merging the inner select: one index lookup for each nonce.
const KNOWN_ENTRIES: &str = concat!(
    "select known.* from unnest($1::bigint[], $2::uuid[]) as given (experiment_id, nonce)
     cross join lateral (
         select ",
    log_columns!(),
    " from log where log.experiment_id = given.experiment_id and log.nonce = given.nonce offset 0
     ) as known"
);

/// The entries of [`arguments`], which take the first 14 parameters. `place` names the second.
macro_rules! given_entries {
    ($place:literal) => {
        concat!(
            "unnest(
                 $1::bigint[], $2::bigint[], $3::uuid[], $4::smallint[], $5::integer[],
                 $6::integer[], $7::boolean[], $8::smallint[], $9::bigint[], $10::bigint[],
                 $11::bigint[], $12::bigint[], $13::text[]
             ) as entry (experiment_id, ",
            $place,
            ", nonce, kind, first_ranker, second_ranker, first_left, answer, batch, ticket,
                 chosen_at, issued_at_ms, detail)"
        )
    };
}
macro_rules! entry_columns {
    () => {
        "nonce, $14, kind, first_ranker, second_ranker, first_left, answer, batch, ticket, \
         chosen_at, issued_at_ms, detail"
    };
}

/// Lock heads in order, write entries and move the heads, if every experiment exists and is neither
/// archived nor frozen. A lock that had to wait reads the row as it is afterwards.
const APPEND_NEW: &str = concat!(
    "with locked as materialized (
         select id, head from experiment
         where id = any($15) and archived_at_ms is null and presence = 'here'
         order by id for no key update
     ), open as materialized (
         select id, head from locked
         where (select count(*) from locked) = cardinality($15::bigint[])
     ), entries as (
         insert into log (",
    log_columns!(),
    ") select experiment_id, open.head + ordinal, ",
    entry_columns!(),
    " from ",
    given_entries!("ordinal"),
    " join open on open.id = experiment_id
     )
     update experiment set head = open.head + added.entries
     from open
     join unnest($15::bigint[], $16::bigint[]) as added (id, entries) on added.id = open.id
     where experiment.id = open.id
     returning experiment.id, experiment.head"
);

macro_rules! moved_heads {
    ($experiments:literal, $heads:literal) => {
        concat!(
            "with moved as (
                 update experiment set head = moved.head
                 from unnest(",
            $experiments,
            "::bigint[], ",
            $heads,
            "::bigint[]) as moved (id, head) where experiment.id = moved.id returning 1
             ) "
        )
    };
}

const MOVE_HEADS: &str = concat!(moved_heads!("$1", "$2"), "select count(*) from moved");

/// Entries and heads in one round trip.
const WRITE_ENTRIES: &str = concat!(
    moved_heads!("$15", "$16"),
    "insert into log (",
    log_columns!(),
    ") select experiment_id, position, ",
    entry_columns!(),
    " from ",
    given_entries!("position")
);

const COPY_ENTRIES: &str = concat!("copy log (", log_columns!(), ") from stdin (format binary)");

impl PostgresStore {
    pub(super) async fn read_heads(
        &self,
        experiments: &[ExperimentId],
    ) -> Result<Vec<Head>, StoreError> {
        let rows: Vec<HeadRow> = sqlx::query_as(HEADS)
            .bind(ascending(experiments.iter().copied()))
            .fetch_all(self.readers())
            .await?;
        records(rows)
    }

    /// Many entries by a copy: each row of a query costs the driver more time than the server, and
    /// a row of a copy costs almost nothing.
    pub(super) async fn read_bulk(
        &self,
        experiment: ExperimentId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        // a copy takes no parameters; these are numbers
        let statement = format!(
            "copy (select {} from log where experiment_id = {experiment} and position > {after} \
             and exists (select 1 from experiment where id = {experiment} and {}) \
             order by position limit {limit}) to stdout (format binary)",
            log_columns!(),
            is_present!()
        );
        let mut transaction = self.begin().await?;
        let mut stream = transaction.connection().copy_out_raw(&statement).await?;
        let mut data = Vec::new();
        while let Some(part) = stream.try_next().await? {
            data.extend_from_slice(&part);
        }
        drop(stream);
        transaction.commit().await?;
        copy::entries(&data)
    }

    pub(super) async fn find_entries(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        // The lock makes this a commit that waits as an append does, so that what is found is as
        // durable as what is appended.
        let mut transaction = self.begin().await?;
        sqlx::query(LOCK_HEADS).bind(vec![experiment]).execute(&mut *transaction).await?;
        let nonces_here = nonces.iter().map(|nonce| (experiment, *nonce));
        let known = known_entries(&mut transaction, nonces_here).await?;
        transaction.commit().await?;
        Ok(in_order_of(nonces, known))
    }
}

/// Lock the rows of these experiments, in the order given.
pub(super) async fn lock_heads(
    transaction: &mut PgTransaction<'_>,
    ids: Vec<ExperimentId>,
) -> Result<Vec<Head>, StoreError> {
    let rows: Vec<HeadRow> = sqlx::query_as(LOCK_HEADS).bind(ids).fetch_all(transaction).await?;
    records(rows)
}

/// The log entries under these nonces, in no particular order.
pub(super) async fn known_entries(
    transaction: &mut PgTransaction<'_>,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let (experiments, nonces): (Vec<_>, Vec<_>) =
        nonces.map(|(experiment, nonce)| (experiment, Uuid::from_u128(nonce))).unzip();
    let rows: Vec<LogRow> =
        sqlx::query_as(KNOWN_ENTRIES).bind(experiments).bind(nonces).fetch_all(transaction).await?;
    rows.into_iter().map(|row| Ok((row.experiment_id, row.try_into()?))).collect()
}

/// Append events in one statement, assuming that all of them are new. `added` has the number of
/// events of each experiment, and `ordinals` the rank of each event among them. Returns the new
/// heads; none if nothing was written.
pub(super) async fn append_new(
    statements: SingleStatements<'_>,
    events: &[(ExperimentId, NewEvent)],
    ordinals: Vec<i64>,
    added: &BTreeMap<ExperimentId, i64>,
    recorded_at: i64,
) -> Result<BTreeMap<ExperimentId, i64>, StoreError> {
    let entries = events.iter().map(|(experiment, new)| (*experiment, new.nonce, &new.event));
    let rows: Vec<(i64, i64)> =
        sqlx::query_as_with(APPEND_NEW, arguments(entries, ordinals, recorded_at)?)
            .bind(added.keys().copied().collect::<Vec<i64>>())
            .bind(added.values().copied().collect::<Vec<i64>>())
            .fetch_all(statements)
            .await?;
    Ok(rows.into_iter().collect())
}

/// Write log entries; their experiments' heads stay as they are.
pub(super) async fn insert_entries(
    transaction: &mut PgTransaction<'_>,
    entries: &[NewEntry<'_>],
    recorded_at: i64,
) -> Result<(), StoreError> {
    write_entries(transaction, entries, &BTreeMap::new(), recorded_at).await
}

/// Write log entries and set the heads of their experiments.
pub(super) async fn write_entries(
    transaction: &mut PgTransaction<'_>,
    entries: &[NewEntry<'_>],
    heads: &BTreeMap<ExperimentId, u64>,
    recorded_at: i64,
) -> Result<(), StoreError> {
    let positions = entries
        .iter()
        .map(|entry| to_column("position", entry.position))
        .collect::<Result<Vec<i64>, _>>()?;
    let (experiments, heads) = head_columns(heads)?;
    let entries = entries.iter().map(|entry| (entry.experiment, entry.nonce, entry.event));
    sqlx::query_with(WRITE_ENTRIES, arguments(entries, positions, recorded_at)?)
        .bind(experiments)
        .bind(heads)
        .execute(transaction)
        .await?;
    Ok(())
}

/// [`write_entries`] for many entries.
pub(super) async fn copy_entries(
    transaction: &mut PgTransaction<'_>,
    entries: &[NewEntry<'_>],
    heads: &BTreeMap<ExperimentId, u64>,
    recorded_at: i64,
) -> Result<(), StoreError> {
    let (experiments, heads) = head_columns(heads)?;
    copy_in(transaction, copy::rows(entries.iter().map(|entry| (*entry, recorded_at)))?).await?;
    sqlx::query(MOVE_HEADS).bind(experiments).bind(heads).execute(transaction).await?;
    Ok(())
}

/// Write log entries that another database recorded.
pub(super) async fn insert_copied(
    transaction: &mut PgTransaction<'_>,
    experiment: ExperimentId,
    entries: &[LogEntry],
) -> Result<(), StoreError> {
    copy_in(transaction, copy::rows(copied(experiment, entries))?).await
}

async fn copy_in(transaction: &mut PgTransaction<'_>, rows: Vec<u8>) -> Result<(), StoreError> {
    let mut copy = transaction.connection().copy_in_raw(COPY_ENTRIES).await?;
    copy.send(rows).await?;
    copy.finish().await?;
    Ok(())
}

fn head_columns(heads: &BTreeMap<ExperimentId, u64>) -> Result<(Vec<i64>, Vec<i64>), StoreError> {
    let positions =
        heads.values().map(|head| to_column("head", *head)).collect::<Result<_, _>>()?;
    Ok((heads.keys().copied().collect(), positions))
}

/// The first 14 arguments of the statements that write entries: an array for each column, and the
/// time of recording.
fn arguments<'a>(
    entries: impl Iterator<Item = (ExperimentId, Nonce, &'a Event)>,
    places: Vec<i64>,
    recorded_at: i64,
) -> Result<PgArguments, StoreError> {
    let (mut experiments, mut nonces, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    for (experiment, nonce, event) in entries {
        experiments.push(experiment);
        nonces.push(Uuid::from_u128(nonce));
        columns.push(EventColumns::from(event));
    }
    let details: Vec<Option<String>> =
        columns.iter_mut().map(|event| event.detail.take()).collect();
    fn column<T>(columns: &[EventColumns], of: impl Fn(&EventColumns) -> T) -> Vec<T> {
        columns.iter().map(of).collect()
    }
    let mut arguments = PgArguments::default();
    let add_all = || {
        arguments.add(experiments)?;
        arguments.add(places)?;
        arguments.add(nonces)?;
        arguments.add(column(&columns, |event| event.kind))?;
        arguments.add(column(&columns, |event| event.first_ranker))?;
        arguments.add(column(&columns, |event| event.second_ranker))?;
        arguments.add(column(&columns, |event| event.first_left))?;
        arguments.add(column(&columns, |event| event.answer))?;
        arguments.add(column(&columns, |event| event.batch))?;
        arguments.add(column(&columns, |event| event.ticket))?;
        arguments.add(column(&columns, |event| event.chosen_at))?;
        arguments.add(column(&columns, |event| event.issued_at_ms))?;
        arguments.add(details)?;
        arguments.add(recorded_at)
    };
    add_all().map_err(sqlx::Error::Encode)?;
    Ok(arguments)
}
