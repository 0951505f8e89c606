//! Reads and writes of logs in PostgreSQL's own SQL.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgArguments;
use sqlx::types::Uuid;
use sqlx::{Arguments as _, Encode, Executor, Postgres, Type};

use super::copy;
use super::pool_mode::{PgTransaction, SingleStatements};
use super::statements::{
    APPEND, APPEND_TO_SEVERAL, COPY_ENTRIES, HEADS, INSERT_ENTRIES, KNOWN_ENTRIES,
    KNOWN_ENTRIES_OF_SEVERAL, LOCK_HEAD, LOCK_HEADS, MOVE_HEAD, MOVE_HEADS, READ_BULK,
    WRITE_ENTRIES_OF_SEVERAL,
};
use super::store::PostgresStore;
use crate::events::Event;
use crate::store::append_plan::{NewEntry, copied};
use crate::store::sql::log_row::{EventColumns, LogRow, in_order_of};
use crate::store::sql::numbers::to_column;
use crate::store::sql::rows::{HeadRow, ascending, records};
use crate::store::{ExperimentId, Head, LogEntry, LogPage, NewEvent, Nonce, StoreError};

/// From this many entries on, a copy is cheaper than a statement although it takes more round
/// trips.
pub(super) const COPY_FROM: usize = 256;

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
    ) -> Result<LogPage, StoreError> {
        let numbers = [experiment, after, i64::from(limit)];
        let statement = (1..).zip(numbers).fold(READ_BULK.to_owned(), |sql, (n, number)| {
            sql.replace(&format!("${n}"), &number.to_string())
        });
        let mut transaction = self.begin().await?;
        let mut stream = transaction.connection().copy_out_raw(&statement).await?;
        let mut data = Vec::new();
        while let Some(part) = stream.try_next().await? {
            data.extend_from_slice(&part);
        }
        drop(stream);
        transaction.commit().await?;
        Ok(LogPage::encoded(copy::is_empty(&data), move || copy::entries(&data)))
    }

    pub(super) async fn find_entries(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        // The lock makes this a commit that waits as an append does, so that what is found is as
        // durable as what is appended.
        let mut transaction = self.begin().await?;
        lock_heads(&mut transaction, &[experiment]).await?;
        let nonces_here = nonces.iter().map(|nonce| (experiment, *nonce));
        let known = known_entries(&mut transaction, nonces_here).await?;
        transaction.commit().await?;
        Ok(in_order_of(nonces, known))
    }
}

/// Lock the rows of these experiments, in the order given.
pub(super) async fn lock_heads(
    transaction: &mut PgTransaction<'_>,
    ids: &[ExperimentId],
) -> Result<Vec<Head>, StoreError> {
    let query = match ids {
        [id] => sqlx::query_as(LOCK_HEAD).bind(id),
        ids => sqlx::query_as(LOCK_HEADS).bind(ids),
    };
    let rows: Vec<HeadRow> = query.fetch_all(transaction).await?;
    records(rows)
}

/// The log entries under these nonces, in no particular order.
pub(super) async fn known_entries(
    transaction: &mut PgTransaction<'_>,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let (experiments, nonces): (Vec<_>, Vec<_>) =
        nonces.map(|(experiment, nonce)| (experiment, Uuid::from_u128(nonce))).unzip();
    if nonces.is_empty() {
        return Ok(Vec::new());
    }
    let query = match single(experiments.iter().copied()) {
        Some(experiment) => sqlx::query_as(KNOWN_ENTRIES).bind(experiment),
        None => sqlx::query_as(KNOWN_ENTRIES_OF_SEVERAL).bind(experiments),
    };
    let rows: Vec<LogRow> = query.bind(nonces).fetch_all(transaction).await?;
    rows.into_iter().map(|row| Ok((row.experiment_id, row.try_into()?))).collect()
}

/// Append events of one experiment in one call, assuming that all of them are new. Returns the new
/// head; `None` if the experiment does not exist or is archived, and nothing was written.
pub(super) async fn append_new<'c>(
    executor: impl Executor<'c, Database = Postgres>,
    experiment: ExperimentId,
    events: impl Iterator<Item = (Nonce, &Event)>,
    ordinals: Vec<i64>,
    recorded_at: i64,
) -> Result<Option<i64>, StoreError> {
    let arguments = arguments(experiment, events, ordinals, recorded_at)?;
    Ok(sqlx::query_scalar_with(APPEND, arguments).fetch_one(executor).await?)
}

/// [`append_new`] for several experiments. `added` has the number of events of each, and
/// `ordinals` the rank of each event among them. Returns the new heads; none if nothing was
/// written.
pub(super) async fn append_new_to_several(
    statements: SingleStatements<'_>,
    events: &[(ExperimentId, NewEvent)],
    ordinals: Vec<i64>,
    added: &BTreeMap<ExperimentId, i64>,
    recorded_at: i64,
) -> Result<BTreeMap<ExperimentId, i64>, StoreError> {
    let experiments: Vec<_> = events.iter().map(|(experiment, _)| *experiment).collect();
    let entries = events.iter().map(|(_, new)| (new.nonce, &new.event));
    let arguments = arguments(experiments, entries, ordinals, recorded_at)?;
    let rows: Vec<(i64, i64)> = sqlx::query_as_with(APPEND_TO_SEVERAL, arguments)
        .bind(added.keys().copied().collect::<Vec<i64>>())
        .bind(added.values().copied().collect::<Vec<i64>>())
        .fetch_all(statements)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Write log entries of one experiment; its head stays as it is.
pub(super) async fn insert_entries(
    transaction: &mut PgTransaction<'_>,
    entries: &[NewEntry<'_>],
    recorded_at: i64,
) -> Result<(), StoreError> {
    let Some(first) = entries.first() else { return Ok(()) };
    let arguments =
        arguments(first.experiment, events_of(entries), positions_of(entries)?, recorded_at)?;
    sqlx::query_with(INSERT_ENTRIES, arguments).execute(transaction).await?;
    Ok(())
}

/// Write log entries above the locked heads of their experiments, and move these to `heads`.
pub(super) async fn write_entries(
    transaction: &mut PgTransaction<'_>,
    entries: &[NewEntry<'_>],
    heads: &BTreeMap<ExperimentId, u64>,
    recorded_at: i64,
) -> Result<(), StoreError> {
    if let Some((experiment, head)) = single_head(heads)? {
        let ordinals = (1..).take(entries.len()).collect();
        let moved =
            append_new(transaction, experiment, events_of(entries), ordinals, recorded_at).await?;
        return match moved {
            Some(moved) if moved == head => Ok(()),
            moved => Err(StoreError::Corrupt(format!(
                "the head of experiment {experiment} is {moved:?} after an append to {head}"
            ))),
        };
    }
    let experiments: Vec<_> = entries.iter().map(|entry| entry.experiment).collect();
    let (ids, heads) = head_columns(heads)?;
    let arguments =
        arguments(experiments, events_of(entries), positions_of(entries)?, recorded_at)?;
    sqlx::query_with(WRITE_ENTRIES_OF_SEVERAL, arguments)
        .bind(ids)
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
    copy_in(transaction, copy::rows(entries.iter().map(|entry| (*entry, recorded_at)))?).await?;
    let query = match single_head(heads)? {
        Some((experiment, head)) => sqlx::query(MOVE_HEAD).bind(experiment).bind(head),
        None => {
            let (experiments, heads) = head_columns(heads)?;
            sqlx::query(MOVE_HEADS).bind(experiments).bind(heads)
        }
    };
    query.execute(transaction).await?;
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

/// The experiment that all of these are, if there is exactly one.
fn single(mut experiments: impl Iterator<Item = ExperimentId>) -> Option<ExperimentId> {
    let first = experiments.next()?;
    experiments.all(|experiment| experiment == first).then_some(first)
}

/// The experiment and its head, if there is exactly one.
fn single_head(
    heads: &BTreeMap<ExperimentId, u64>,
) -> Result<Option<(ExperimentId, i64)>, StoreError> {
    let mut heads = heads.iter();
    match (heads.next(), heads.next()) {
        (Some((experiment, head)), None) => Ok(Some((*experiment, to_column("head", *head)?))),
        _ => Ok(None),
    }
}

fn events_of<'a>(entries: &'a [NewEntry<'a>]) -> impl Iterator<Item = (Nonce, &'a Event)> {
    entries.iter().map(|entry| (entry.nonce, entry.event))
}

fn positions_of(entries: &[NewEntry<'_>]) -> Result<Vec<i64>, StoreError> {
    entries.iter().map(|entry| to_column("position", entry.position)).collect()
}

fn head_columns(heads: &BTreeMap<ExperimentId, u64>) -> Result<(Vec<i64>, Vec<i64>), StoreError> {
    let positions =
        heads.values().map(|head| to_column("head", *head)).collect::<Result<_, _>>()?;
    Ok((heads.keys().copied().collect(), positions))
}

/// The first 14 arguments of the statements that write entries: the experiment, or that of each
/// entry; an array for each column; and the time of recording.
fn arguments<'a, Experiments>(
    experiments: Experiments,
    entries: impl Iterator<Item = (Nonce, &'a Event)>,
    places: Vec<i64>,
    recorded_at: i64,
) -> Result<PgArguments, StoreError>
where
    Experiments: for<'q> Encode<'q, Postgres> + Type<Postgres>,
{
    let (nonces, mut columns): (Vec<_>, Vec<_>) =
        entries.map(|(nonce, event)| (Uuid::from_u128(nonce), EventColumns::from(event))).unzip();
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
