//! [`Backend`] for SQLite, with the reads and writes of logs in its own SQL.

use std::sync::LazyLock;

use sqlx::types::Uuid;
use sqlx::{Sqlite, SqliteConnection};

use super::store::SqliteStore;
use crate::append_plan::{nonces_of, plan};
use crate::sql::backend::{Backend, Transaction};
use crate::sql::log_row::{LogRow, in_order_of};
use crate::sql::rows::{ascending, decoded};
use crate::sql::statement::{Statement, statements};
use crate::sql::table_row::{Of, Record};
use crate::sql::value::{Value, bind_all, values};
use crate::{
    AppendUnit, Appended, ExperimentId, Head, LogEntry, NewEvent, Nonce, Notices, StoreError,
};

statements! {
    /// Needs no lock of its own: a transaction that writes is the only one.
    Experiment LOCK_EXPERIMENT = "select {experiment} from experiment where id = $1";
    Experiment SAVE_ANSWER = "update experiment
         set answer = $3, answered_to = $2, state = $5, list_group = $6, due_at_ms = $7
         where id = $1 and answered_to <= $2 and coalesce(answer, '') = $4";
    Experiments HEADS = "select id, version, head, archived_at_ms is not null as archived
         from experiment where id in (select value from json_each($1)) order by id";
    Together MOVE_HEADS = "update experiment set head = moved.value ->> 1
         from jsonb_each($1) as moved where experiment.id = moved.value ->> 0";
    /// A chunk of the log as one JSON array.
    Experiment READ_BULK = "select json_group_array(json_array({log json}))
         from (select * from log where experiment_id = $1 and position > $2 order by position limit $3)";
    /// Rows of parameters follow. `cross join` keeps the order: an index lookup for each nonce.
    Together KNOWN_ENTRIES = "with given (of, named) as (values {rows}) select {log}
         from given cross join log on experiment_id = of and nonce = named";
    Together INSERT_ROWS = "insert into log ({log}) values {rows}";
}

/// Rows of parameters of one statement, largest first: few sizes, so that each is prepared once,
/// and few statements for a group of any size, because each is a trip to the driver's thread.
/// SQLite allows 32766 parameters.
const SIZES: [usize; 10] = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1];

/// A statement with `{rows}` in each of the sizes.
type InSizes = LazyLock<[String; SIZES.len()]>;

static INSERT_ROWS_IN_SIZES: InSizes =
    LazyLock::new(|| in_sizes(&INSERT_ROWS, LogRow::COLUMNS.len()));
static KNOWN_ENTRIES_IN_SIZES: InSizes = LazyLock::new(|| in_sizes(&KNOWN_ENTRIES, 2));

fn in_sizes(statement: &'static Statement, columns: usize) -> [String; SIZES.len()] {
    let row = format!("({})", vec!["?"; columns].join(","));
    SIZES.map(|size| statement.sql().replace("{rows}", &vec![&*row; size].join(",")))
}

/// The statements for all of `rows`, each with the rows that it covers.
fn split<'r, T>(
    statements: &'static InSizes,
    rows: &'r [T],
) -> impl Iterator<Item = (&'static str, &'r [T])> {
    let mut left = rows;
    std::iter::from_fn(move || {
        let at = SIZES.iter().position(|&size| size <= left.len())?;
        let (covered, rest) = left.split_at(SIZES[at]);
        left = rest;
        Some((&*statements[at], covered))
    })
}

impl Backend for SqliteStore {
    type Transaction = sqlx::Transaction<'static, Sqlite>;

    const LOCK_EXPERIMENT: &'static Statement = &LOCK_EXPERIMENT;
    const SAVE_ANSWER: &'static Statement = &SAVE_ANSWER;

    /// Once: SQLite aborts no transaction that could succeed when repeated.
    async fn attempt<T: Send, F>(
        &self,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        attempt().await
    }

    async fn begin(&self) -> Result<Self::Transaction, StoreError> {
        self.begin_write().await
    }

    async fn fetch<R: Record>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<R>, StoreError> {
        let query = bind_all!(sqlx::query(statement.sql()), values);
        own(R::read_all(query.fetch_all(&self.readers).await?)?, &statement.answers_about(values))
    }

    async fn run(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        self.check_files()?;
        let query = bind_all!(sqlx::query(statement.sql()), values);
        Ok(query.execute(&self.writer).await?.rows_affected())
    }

    async fn read_heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        let ids = json(ascending(experiments.iter().copied()));
        self.fetch(&HEADS, values![&ids]).await
    }

    /// Many entries in one JSON text: each row costs the driver more time than the database, and a
    /// text costs almost nothing.
    async fn read_bulk(
        &self,
        experiment: ExperimentId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = self.fetch(&READ_BULK, values![experiment, after, limit]).await?;
        let text = rows.into_iter().next().map_or_else(String::new, |(text,): (String,)| text);
        decoded(move || {
            let rows: Vec<LogRow> = serde_json::from_str(&text).map_err(|error| {
                StoreError::Corrupt(format!(
                    "the log of experiment {experiment} after position {after}: {error}"
                ))
            })?;
            LogRow::entries(own(rows, &Of::Experiments(vec![experiment]))?)
        })
        .await
    }

    async fn find_entries(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        let mut connection = self.readers.acquire().await?;
        let known =
            known_entries(&mut connection, nonces.iter().map(|nonce| (experiment, *nonce))).await?;
        self.check_files()?;
        Ok(in_order_of(nonces, known))
    }

    /// All experiments are in one file.
    fn unit_of(&self, _experiment: ExperimentId) -> AppendUnit {
        AppendUnit::Whole
    }

    async fn append_events(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let mut transaction = self.begin_append().await?;
        let ids = json(ascending(events.iter().map(|(experiment, _)| *experiment)));
        let heads = transaction.fetch(&HEADS, values![&ids]).await?;
        let known = known_entries(&mut transaction, nonces_of(events)).await?;
        let plan = plan(events, heads, &known);
        if !plan.entries.is_empty() {
            transaction.insert_rows(&plan.rows(recorded_at)?).await?;
            let heads: Vec<_> = plan.heads.iter().collect();
            transaction.run(&MOVE_HEADS, values![&json(heads)]).await?;
            transaction.commit().await?;
        }
        // last: an answer is acknowledged, also as a duplicate, only in a file that is still there
        self.check_files()?;
        Ok(plan.results)
    }

    /// SQLite sends no notifications.
    async fn open_listener(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        Ok(None)
    }

    fn announce(&self, _experiment: ExperimentId, _head: u64) {}
}

impl Transaction for sqlx::Transaction<'static, Sqlite> {
    async fn fetch<R: Record>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<R>, StoreError> {
        let query = bind_all!(sqlx::query(statement.sql()), values);
        own(R::read_all(query.fetch_all(&mut **self).await?)?, &statement.answers_about(values))
    }

    async fn run(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let query = bind_all!(sqlx::query(statement.sql()), values);
        Ok(query.execute(&mut **self).await?.rows_affected())
    }

    async fn insert_rows(&mut self, rows: &[LogRow]) -> Result<(), StoreError> {
        for (statement, rows) in split(&INSERT_ROWS_IN_SIZES, rows) {
            let values: Vec<Value<'_>> = rows.iter().flat_map(LogRow::values).collect();
            let query = bind_all!(sqlx::query(statement), values);
            query.execute(&mut **self).await?;
        }
        Ok(())
    }

    /// Only one transaction writes at a time.
    async fn lock_signing_keys(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn commit(self) -> Result<(), StoreError> {
        Ok(sqlx::Transaction::commit(self).await?)
    }
}

/// The log entries under these nonces, in no particular order.
async fn known_entries(
    connection: &mut SqliteConnection,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let nonces: Vec<_> = nonces.collect();
    let mut known = Vec::new();
    for (statement, nonces) in split(&KNOWN_ENTRIES_IN_SIZES, &nonces) {
        let query = nonces.iter().fold(sqlx::query(statement), |query, (experiment, nonce)| {
            query.bind(*experiment).bind(Uuid::from_u128(*nonce))
        });
        for row in LogRow::read_all(query.fetch_all(&mut *connection).await?)? {
            known.push((row.experiment_id, row.try_into()?));
        }
    }
    Ok(known)
}

/// These rows, unless one belongs to another experiment than the one that was asked for.
fn own<R: Record>(rows: Vec<R>, of: &Of) -> Result<Vec<R>, StoreError> {
    of.foreign(&rows).map_or(Ok(rows), |why| Err(StoreError::Foreign(why)))
}

/// Rows as one parameter.
fn json(rows: impl serde::Serialize) -> String {
    serde_json::to_string(&rows).expect("numbers, strings and lists always serialise")
}
