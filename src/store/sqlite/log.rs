//! Reads and writes of logs in SQLite's own SQL.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use sqlx::sqlite::SqliteArguments;
use sqlx::types::Uuid;
use sqlx::{Arguments as _, AssertSqlSafe, SqliteConnection};

use super::row_statements::RowStatements;
use super::store::SqliteStore;
use crate::store::append_plan::{NewEntry, copied, nonces_of, plan};
use crate::store::sql::log_row::{EventColumns, LogRow, in_order_of};
use crate::store::sql::numbers::to_column;
use crate::store::sql::rows::{HeadRow, ascending, records};
use crate::store::sql::statements::{experiment_columns, is_present, log_columns};
use crate::store::{
    AppendUnit, Appended, ExperimentId, Head, LogEntry, LogPage, NewEvent, Nonce, Notices,
    StoreError,
};

/// Needs no lock of its own: a transaction that writes is the only one.
pub(super) const LOCK_EXPERIMENT: &str =
    concat!("select ", experiment_columns!(), " from experiment where id = $1 and ", is_present!());

const HEADS: &str = concat!(
    "select id, version, head, archived_at_ms is not null as archived, presence = 'frozen' as frozen
     from experiment where id in (select value from json_each($1)) and ",
    is_present!(),
    " order by id"
);

const MOVE_HEADS: &str = "update experiment set head = moved.value ->> 1
     from jsonb_each($1) as moved where experiment.id = moved.value ->> 0";

/// `cross join` keeps the order: an index lookup for each given nonce.
static KNOWN_ENTRIES: LazyLock<RowStatements> = LazyLock::new(|| {
    RowStatements::new(
        "with given (of, named) as (values ",
        2,
        concat!(
            ") select ",
            log_columns!(),
            " from given cross join log on experiment_id = of and nonce = named"
        ),
    )
});

static INSERT_ENTRIES: LazyLock<RowStatements> = LazyLock::new(|| {
    RowStatements::new(concat!("insert into log (", log_columns!(), ") values "), 14, "")
});

/// A chunk of the log as one JSON array; the columns of [`JsonRow`].
const READ_BULK: &str = concat!(
    "select json_group_array(json_array(
        position, hex(nonce), recorded_at_ms, kind, first_ranker, second_ranker, first_left, answer,
        batch, ticket, chosen_at, issued_at_ms, detail
    ))
    from (
        select * from log where experiment_id = $1 and position > $2
            and exists (select 1 from experiment where id = $1 and ",
    is_present!(),
    ")
        order by position limit $3
    )"
);

impl SqliteStore {
    /// All experiments are in one file.
    pub(super) fn unit_of(&self, _experiment: ExperimentId) -> AppendUnit {
        AppendUnit::default()
    }

    pub(super) async fn read_heads(
        &self,
        experiments: &[ExperimentId],
    ) -> Result<Vec<Head>, StoreError> {
        let ids = json(ascending(experiments.iter().copied()));
        let rows: Vec<HeadRow> = sqlx::query_as(HEADS).bind(ids).fetch_all(self.readers()).await?;
        records(rows)
    }

    /// Many entries in one JSON text: each row costs the driver more time than the database, and a
    /// text costs almost nothing.
    pub(super) async fn read_bulk(
        &self,
        experiment: ExperimentId,
        after: i64,
        limit: u32,
    ) -> Result<LogPage, StoreError> {
        let text: String = sqlx::query_scalar(READ_BULK)
            .bind(experiment)
            .bind(after)
            .bind(i64::from(limit))
            .fetch_one(self.readers())
            .await?;
        Ok(LogPage::encoded(text == "[]", move || {
            let rows: Vec<JsonRow> = serde_json::from_str(&text).map_err(|error| {
                StoreError::Corrupt(format!(
                    "the log of experiment {experiment} after position {after}: {error}"
                ))
            })?;
            rows.into_iter().map(|row| row.read(experiment)?.try_into()).collect()
        }))
    }

    pub(super) async fn find_entries(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        let mut connection = self.readers().acquire().await?;
        let known =
            known_entries(&mut connection, nonces.iter().map(|nonce| (experiment, *nonce))).await?;
        Ok(in_order_of(nonces, known))
    }

    pub(super) async fn append_events(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let mut transaction = self.begin().await?;
        let ids = json(ascending(events.iter().map(|(experiment, _)| *experiment)));
        let rows: Vec<HeadRow> =
            sqlx::query_as(HEADS).bind(ids).fetch_all(&mut *transaction).await?;
        let known = known_entries(&mut transaction, nonces_of(events)).await?;
        let plan = plan(events, records(rows)?, &known);
        if !plan.entries.is_empty() {
            insert_entries(&mut transaction, &plan.entries, recorded_at).await?;
            let heads: Vec<_> = plan.heads.iter().collect();
            sqlx::query(MOVE_HEADS).bind(json(heads)).execute(&mut *transaction).await?;
            transaction.commit().await?;
        }
        Ok(plan.results)
    }

    /// SQLite sends no notifications.
    pub(super) async fn open_listener(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        Ok(None)
    }

    pub(super) fn announce(&self, _experiment: ExperimentId, _head: u64) {}
}

/// The log entries under these nonces, in no particular order.
async fn known_entries(
    connection: &mut SqliteConnection,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let nonces: Vec<_> = nonces.collect();
    let mut known = Vec::new();
    for (statement, mut arguments, nonces) in KNOWN_ENTRIES.split(&nonces) {
        for (experiment, nonce) in nonces {
            arguments.add(experiment).map_err(sqlx::Error::Encode)?;
            arguments.add(Uuid::from_u128(*nonce)).map_err(sqlx::Error::Encode)?;
        }
        let rows: Vec<LogRow> = sqlx::query_as_with(AssertSqlSafe(statement), arguments)
            .fetch_all(&mut *connection)
            .await?;
        for row in rows {
            known.push((row.experiment_id, row.try_into()?));
        }
    }
    Ok(known)
}

/// Write log entries; their experiments' heads stay as they are.
pub(super) async fn insert_entries(
    connection: &mut SqliteConnection,
    entries: &[NewEntry<'_>],
    recorded_at: i64,
) -> Result<(), StoreError> {
    let timed: Vec<_> = entries.iter().map(|entry| (*entry, recorded_at)).collect();
    insert_timed(connection, &timed).await
}

/// Write log entries that another database recorded.
pub(super) async fn insert_copied(
    connection: &mut SqliteConnection,
    experiment: ExperimentId,
    entries: &[LogEntry],
) -> Result<(), StoreError> {
    let timed: Vec<_> = copied(experiment, entries).collect();
    insert_timed(connection, &timed).await
}

/// Write log entries, each with the time at which it was recorded.
async fn insert_timed(
    connection: &mut SqliteConnection,
    entries: &[(NewEntry<'_>, i64)],
) -> Result<(), StoreError> {
    for (statement, mut arguments, entries) in INSERT_ENTRIES.split(entries) {
        for (entry, recorded_at) in entries {
            let position = to_column("position", entry.position)?;
            bind_entry(&mut arguments, entry, position, *recorded_at)
                .map_err(sqlx::Error::Encode)?;
        }
        sqlx::query_with(AssertSqlSafe(statement), arguments).execute(&mut *connection).await?;
    }
    Ok(())
}

/// In the order of `log_columns!`.
fn bind_entry(
    row: &mut SqliteArguments,
    entry: &NewEntry<'_>,
    position: i64,
    recorded_at: i64,
) -> Result<(), BoxDynError> {
    let event = EventColumns::from(entry.event);
    row.add(entry.experiment)?;
    row.add(position)?;
    row.add(Uuid::from_u128(entry.nonce))?;
    row.add(recorded_at)?;
    row.add(event.kind)?;
    row.add(event.first_ranker)?;
    row.add(event.second_ranker)?;
    row.add(event.first_left)?;
    row.add(event.answer)?;
    row.add(event.batch)?;
    row.add(event.ticket)?;
    row.add(event.chosen_at)?;
    row.add(event.issued_at_ms)?;
    row.add(event.detail)
}

/// A row of [`READ_BULK`].
#[derive(Deserialize)]
struct JsonRow<'a>(
    i64,
    &'a str,
    i64,
    i16,
    Option<i32>,
    Option<i32>,
    Option<i64>,
    Option<i16>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<String>,
);

impl JsonRow<'_> {
    fn read(self, experiment_id: ExperimentId) -> Result<LogRow, StoreError> {
        let Self(
            position,
            nonce,
            recorded_at_ms,
            kind,
            first_ranker,
            second_ranker,
            first_left,
            answer,
            batch,
            ticket,
            chosen_at,
            issued_at_ms,
            detail,
        ) = self;
        let nonce = u128::from_str_radix(nonce, 16).map_err(|_| {
            StoreError::Corrupt(format!(
                "log entry {position} of experiment {experiment_id}: its nonce"
            ))
        })?;
        let first_left = first_left.map(|left| left != 0);
        Ok(LogRow {
            experiment_id,
            position,
            nonce: Uuid::from_u128(nonce),
            recorded_at_ms,
            event: EventColumns {
                kind,
                first_ranker,
                second_ranker,
                first_left,
                answer,
                batch,
                ticket,
                chosen_at,
                issued_at_ms,
                detail,
            },
        })
    }
}

/// Rows as one parameter.
fn json(rows: impl Serialize) -> String {
    serde_json::to_string(&rows).expect("numbers, strings and lists always serialise")
}
