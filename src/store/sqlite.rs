//! The store in an SQLite file.
//!
//! The file is in write-ahead-log mode and every commit is synced (`synchronous=FULL`). Writes go
//! through one connection, one transaction at a time; reads have connections of their own and wait
//! for nobody. Every transaction that writes begins with `begin immediate`: one that reads first
//! and writes then can be refused at once when another process has written in between, which no
//! timeout waits for.
//!
//! Several processes on one machine may share the file: SQLite lets one of them write at a time and
//! the others wait, so positions stay dense and a nonce still counts once. They must see one file
//! on a local disk, not over a network file system.
//!
//! A connection runs on a thread of its own and each statement is a trip there and back. What an
//! append does to many rows is therefore done by statements over many rows, of a few sizes, so that
//! each is prepared once.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::types::Uuid;
use sqlx::{
    Arguments as _, AssertSqlSafe, Connection, Sqlite, SqliteConnection, SqlitePool, Transaction,
};

use super::access::{self, ApiKeyRow, AuditRow};
use super::append::{nonces_of, plan};
use super::row::{
    EventColumns, ExperimentRow, HeadRow, LogRow, SigningKeyRow, SnapshotRow, ascending, counted,
    experiment_columns, in_order_of, log_columns, records, sql, status_name,
};
use super::{
    ApiKeyRecord, Appended, AuditNote, AuditRecord, Change, Changed, Created, ExperimentId,
    ExperimentRecord, Head, Imported, LogEntry, NewEvent, NewExperiment, Nonce, Notices, Pages,
    SigningKey, Snapshot, Store, StoreError, schema,
};

/// What is there and unknown is judged by [`schema::compare`].
static MIGRATIONS: Migrator =
    Migrator { ignore_missing: true, ..sqlx::migrate!("migrations/sqlite") };

/// How long a statement waits while another process writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection: for its turn to write, mostly.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that read.
const READERS: u32 = 4;
/// How large the write-ahead log stays on disk once it has been copied into the database.
const WAL_SIZE_LIMIT_BYTES: &str = "67108864";
/// Page cache of the writing connection, in KiB (SQLite takes a negative number as KiB): nonces are
/// random, so an append touches pages all over their index.
const WRITER_CACHE: &str = "-65536";

/// Positions that one statement of a pruning forgets.
const PRUNE_STEP: i64 = 10_000;

/// A [`Store`] in an SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl SqliteStore {
    /// Open the file, and make it if the options say so. It is put into write-ahead-log mode here,
    /// once; the mode stays with the file.
    pub(super) async fn open(
        options: SqliteConnectOptions,
        read_only: bool,
    ) -> Result<Self, StoreError> {
        let options = options
            .read_only(read_only)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "1") // on macOS an fsync alone does not reach the disk
            .pragma("checkpoint_fullfsync", "1")
            .pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES);
        let pool = || {
            SqlitePoolOptions::new()
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false) // a thread of our own process; a broken one is dropped on release
        };
        let writer = pool()
            .max_connections(1)
            // SQLite itself rolls back after some errors (a full disk, for one) and the driver then
            // goes on believing in a transaction: such a connection is closed and the next call
            // opens another
            .after_release(|connection, _| {
                Box::pin(async move {
                    connection.ping().await?;
                    Ok(!connection.is_in_transaction())
                })
            })
            .connect_lazy_with(options.clone().pragma("cache_size", WRITER_CACHE));
        // only the writer may make the file: a reader that found none would read from an empty one
        let readers = pool()
            .max_connections(READERS)
            .connect_lazy_with(options.create_if_missing(false).pragma("query_only", "1"));
        if !read_only {
            enter_wal_mode(&writer).await?;
            // a process that was killed between writing and syncing leaves a commit that can be
            // read and is not yet durable; a checkpoint syncs it before anybody is told of it
            sqlx::query("pragma wal_checkpoint(passive)").execute(&writer).await?;
        }
        Ok(Self { writer, readers })
    }

    /// Many entries at once, as [`Store::read`]: a row costs the driver more than the database, a
    /// text next to nothing.
    async fn read_together(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let text: String = sqlx::query_scalar(READ_TOGETHER)
            .bind(experiment)
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .bind(i64::from(limit))
            .fetch_one(&self.readers)
            .await?;
        let unreadable = |error: serde_json::Error| {
            StoreError::Corrupt(format!(
                "the log of experiment {experiment} after position {after}: {error}"
            ))
        };
        let rows: Vec<JsonRow> = serde_json::from_str(&text).map_err(unreadable)?;
        rows.into_iter().map(|row| row.read(experiment)?.try_into()).collect()
    }

    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.writer.begin_with("begin immediate").await?)
    }
}

/// Changing the mode needs the file for itself, and the busy timeout does not wait for that:
/// several processes that open a new file at once have to take turns.
async fn enter_wal_mode(writer: &SqlitePool) -> Result<(), StoreError> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut pauses = BUSY_TIMEOUT.as_millis() / PAUSE.as_millis();
    loop {
        match sqlx::query_scalar::<_, String>("pragma journal_mode = wal").fetch_one(writer).await {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::Unavailable(sqlx::Error::Configuration(
                    format!("SQLite cannot keep a write-ahead log here (its journal mode stays {mode:?})")
                        .into(),
                )));
            }
            Err(error) if pauses == 0 || !is_busy(&error) => return Err(error.into()),
            Err(_) => {
                pauses -= 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// SQLITE_BUSY, in any of its forms.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

#[async_trait]
impl Store for SqliteStore {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        // in one transaction: whoever comes second waits, and finds nothing left to do
        let mut transaction = self.begin().await?;
        // `run` says the same, but its future cannot be proven `Send` inside this one
        MIGRATIONS.run_direct(None, &mut *transaction, false).await?;
        let applied = sqlx::query_as(sql::MIGRATIONS).fetch_all(&mut *transaction).await?;
        schema::compare(&MIGRATIONS, Some(applied))?;
        Ok(transaction.commit().await?)
    }

    async fn check(&self) -> Result<(), StoreError> {
        let migrated: bool = sqlx::query_scalar(
            "select exists (select 1 from sqlite_schema where name = '_sqlx_migrations')",
        )
        .fetch_one(&self.readers)
        .await?;
        let applied = if migrated {
            Some(sqlx::query_as(sql::MIGRATIONS).fetch_all(&self.readers).await?)
        } else {
            None
        };
        schema::compare(&MIGRATIONS, applied)
    }

    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError> {
        let mut transaction = self.begin().await?;
        let created: Option<ExperimentRow> = sqlx::query_as(sql::CREATE_EXPERIMENT)
            .bind(&new.name)
            .bind(&new.spec)
            .bind(new.seed.cast_signed())
            .bind(new.created_at)
            .fetch_optional(&mut *transaction)
            .await?;
        if created.is_some() {
            access::sqlite::add_notes(&mut transaction, &new.audit).await?;
        }
        let taken: Option<ExperimentRow> = match created {
            Some(_) => None,
            None => Some(
                sqlx::query_as(sql::EXPERIMENT)
                    .bind(&new.name)
                    .fetch_one(&mut *transaction)
                    .await?,
            ),
        };
        transaction.commit().await?;
        match (created, taken) {
            (Some(row), _) => Ok(Created::New(row.try_into()?)),
            (None, Some(row)) => Ok(Created::Taken(row.try_into()?)),
            (None, None) => Err(sqlx::Error::RowNotFound.into()),
        }
    }

    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError> {
        let row: Option<ExperimentRow> =
            sqlx::query_as(sql::EXPERIMENT).bind(name).fetch_optional(&self.readers).await?;
        row.map(TryInto::try_into).transpose()
    }

    async fn experiments(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError> {
        let query = match after {
            None => sqlx::query_as(sql::EXPERIMENTS),
            Some(after) => sqlx::query_as(sql::EXPERIMENTS_AFTER).bind(after),
        };
        let rows: Vec<ExperimentRow> =
            query.bind(i64::from(limit)).fetch_all(&self.readers).await?;
        records(rows)
    }

    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        let rows: Vec<HeadRow> = sqlx::query_as(HEADS)
            .bind(json(ascending(experiments.iter().copied())))
            .fetch_all(&self.readers)
            .await?;
        records(rows)
    }

    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError> {
        let mut transaction = self.begin().await?;
        let row: Option<ExperimentRow> = sqlx::query_as(EXPERIMENT_BY_ID)
            .bind(experiment)
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(row) = row else { return Ok(Changed::Missing) };
        let before = ExperimentRecord::try_from(row)?;
        if before.version != expected_version {
            return Ok(Changed::Stale(before));
        }
        let after = change.applied_to(&before, recorded_at);
        sqlx::query(sql::CHANGE_EXPERIMENT)
            .bind(status_name(after.status))
            .bind(after.winner.map(i32::from))
            .bind(after.archived_at)
            .bind(after.updated_at)
            .bind(experiment)
            .bind(counted("version", before.version)?)
            .bind(&after.interleaving)
            .bind(&after.spec)
            .execute(&mut *transaction)
            .await?;
        insert_entries(&mut transaction, &[(experiment, after.head, &event)], recorded_at).await?;
        access::sqlite::add_notes(&mut transaction, &change.audit).await?;
        transaction.commit().await?;
        Ok(Changed::Done(after))
    }

    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.begin().await?;
        let ids = ascending(events.iter().map(|(experiment, _)| *experiment));
        let rows: Vec<HeadRow> =
            sqlx::query_as(HEADS).bind(json(ids)).fetch_all(&mut *transaction).await?;
        let heads = records::<_, Head>(rows)?;
        let nonces = nonces_of(events);
        let known = known_nonces(&mut transaction, nonces).await?;
        let plan = plan(events, heads, &known);
        if !plan.entries.is_empty() {
            insert_entries(&mut transaction, &plan.entries, recorded_at).await?;
            let heads: Vec<_> = plan.heads.iter().collect();
            sqlx::query(MOVE_HEADS).bind(json(heads)).execute(&mut *transaction).await?;
            transaction.commit().await?;
        }
        Ok(plan.answers)
    }

    async fn read(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        if limit >= TOGETHER_FROM {
            return self.read_together(experiment, after, limit).await;
        }
        let rows: Vec<LogRow> = sqlx::query_as(sql::READ)
            .bind(experiment)
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await?;
        records(rows)
    }

    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        let mut connection = self.readers.acquire().await?;
        let known =
            known_nonces(&mut connection, nonces.iter().map(|nonce| (experiment, *nonce))).await?;
        Ok(in_order_of(nonces, known))
    }

    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let position = counted("snapshot position", snapshot.position)?;
        let mut transaction = self.begin().await?;
        sqlx::query(sql::SAVE_SNAPSHOT)
            .bind(snapshot.experiment)
            .bind(i64::from(snapshot.format))
            .bind(position)
            .bind(&snapshot.state)
            .bind(snapshot.created_at)
            .execute(&mut *transaction)
            .await?;
        sqlx::query(sql::FORGET_SNAPSHOTS)
            .bind(snapshot.experiment)
            .bind(i64::from(snapshot.format))
            .bind(position)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }

    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError> {
        let row: Option<SnapshotRow> = sqlx::query_as(sql::NEWEST_SNAPSHOT)
            .bind(experiment)
            .bind(i64::from(format))
            .fetch_optional(&self.readers)
            .await?;
        row.map(TryInto::try_into).transpose()
    }

    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError> {
        let rows: Vec<SnapshotRow> =
            sqlx::query_as(sql::SNAPSHOTS).bind(experiment).fetch_all(&self.readers).await?;
        records(rows)
    }

    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        Ok(None)
    }

    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(sql::NAMES)
            .bind(after)
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await?)
    }

    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        let to = counted("position", to)?;
        let mut transaction = self.begin().await?;
        let query = sqlx::query(sql::PRUNE).bind(experiment).bind(to).bind(i64::from(format));
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        access::sqlite::add_notes(&mut transaction, [audit]).await?;
        transaction.commit().await?;
        // in steps, so that others can write in between; whoever is interrupted can start again
        loop {
            let first: Option<i64> = sqlx::query_scalar(sql::FIRST_ENTRY)
                .bind(experiment)
                .fetch_optional(&self.readers)
                .await?;
            let Some(first) = first.filter(|first| *first <= to) else { return Ok(true) };
            let step = sqlx::query(sql::FORGET_ENTRIES)
                .bind(experiment)
                .bind(to.min(first.saturating_add(PRUNE_STEP)));
            step.execute(&self.writer).await?;
        }
    }

    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        pages: Pages<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Imported, StoreError> {
        let mut transaction = self.begin().await?;
        let imported: Option<ExperimentRow> = sqlx::query_as(sql::IMPORT_EXPERIMENT)
            .bind(&record.name)
            .bind(&record.spec)
            .bind(record.seed.cast_signed())
            .bind(status_name(record.status))
            .bind(record.winner.map(i32::from))
            .bind(counted("version", record.version)?)
            .bind(counted("head", record.head)?)
            .bind(record.created_at)
            .bind(record.updated_at)
            .bind(record.archived_at)
            .bind(counted("pruned_to", record.pruned_to)?)
            .bind(&record.interleaving)
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(imported) = imported else {
            let row: ExperimentRow = sqlx::query_as(sql::EXPERIMENT)
                .bind(&record.name)
                .fetch_one(&mut *transaction)
                .await?;
            return Ok(Imported::Taken(row.try_into()?));
        };
        let imported = ExperimentRecord::try_from(imported)?;
        if let Some(base) = base {
            sqlx::query(sql::SAVE_SNAPSHOT)
                .bind(imported.id)
                .bind(i64::from(base.format))
                .bind(counted("snapshot position", base.position)?)
                .bind(&base.state)
                .bind(base.created_at)
                .execute(&mut *transaction)
                .await?;
        }
        for page in pages {
            let page = page.map_err(StoreError::Corrupt)?;
            // entries that were recorded together are written together
            for together in page.chunk_by(|one, next| one.recorded_at == next.recorded_at) {
                let events: Vec<_> = together
                    .iter()
                    .map(|entry| {
                        (
                            entry.position,
                            NewEvent { nonce: entry.nonce, event: entry.event.clone() },
                        )
                    })
                    .collect();
                let entries: Vec<_> = events
                    .iter()
                    .map(|(position, event)| (imported.id, *position, event))
                    .collect();
                insert_entries(&mut transaction, &entries, together[0].recorded_at).await?;
            }
        }
        access::sqlite::add_notes(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Imported::New(imported))
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let found: Vec<String> =
            sqlx::query_scalar("pragma integrity_check").fetch_all(&self.readers).await?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        let rows: Vec<SigningKeyRow> =
            sqlx::query_as(sql::SIGNING_KEYS).fetch_all(&self.readers).await?;
        records(rows)
    }

    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(sql::ENSURE_SIGNING_KEY)
            .bind(i64::from(key.id))
            .bind(key.secret.as_slice())
            .bind(key.created_at)
            .bind(key.active_from)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.signing_keys().await
    }

    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        sqlx::query(sql::ADD_SIGNING_KEY)
            .bind(i64::from(key.id))
            .bind(key.secret.as_slice())
            .bind(key.created_at)
            .bind(key.active_from)
            .execute(&mut *transaction)
            .await?;
        access::sqlite::add_notes(&mut transaction, [audit]).await?;
        Ok(transaction.commit().await?)
    }

    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let query = sqlx::query(sql::REMOVE_SIGNING_KEY).bind(i64::from(id));
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        access::sqlite::add_notes(&mut transaction, [audit]).await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let rows: Vec<ApiKeyRow> =
            sqlx::query_as(access::sql::API_KEYS).fetch_all(&self.readers).await?;
        records(rows)
    }

    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        access::sqlite::add_key(&mut transaction, key, ends).await?;
        access::sqlite::add_notes(&mut transaction, [audit]).await?;
        Ok(transaction.commit().await?)
    }

    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let revoked = sqlx::query(access::sql::REVOKE_API_KEY)
            .bind(id)
            .bind(at)
            .execute(&mut *transaction)
            .await?;
        if revoked.rows_affected() == 0 {
            return Ok(false);
        }
        access::sqlite::add_notes(&mut transaction, [audit]).await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        access::sqlite::note_uses(&mut transaction, uses).await?;
        Ok(transaction.commit().await?)
    }

    async fn add_audit(&self, notes: &[AuditNote]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        access::sqlite::add_notes(&mut transaction, notes).await?;
        Ok(transaction.commit().await?)
    }

    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let query = match experiment {
            None => sqlx::query_as(access::sql::AUDIT).bind(before).bind(i64::from(limit)),
            Some(name) => sqlx::query_as(access::sql::AUDIT_OF_EXPERIMENT)
                .bind(before)
                .bind(i64::from(limit))
                .bind(name),
        };
        let rows: Vec<AuditRow> = query.fetch_all(&self.readers).await?;
        records(rows)
    }

    async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

const EXPERIMENT_BY_ID: &str =
    concat!("select ", experiment_columns!(), " from experiment where id = $1");

const HEADS: &str =
    "select id, version, head, archived_at_ms is not null as archived from experiment
     where id in (select value from json_each($1)) order by id";

/// Statements over rows of parameters: `before (?, ?), (?, ?), … after`, one of each size.
struct Rows {
    columns: usize,
    of_sizes: [String; SIZES.len()],
}

/// Rows that one statement takes, largest first. SQLite allows 32766 parameters.
const SIZES: [usize; 3] = [500, 25, 1];

impl Rows {
    fn new(before: &str, columns: usize, after: &str) -> Self {
        let row = format!("({})", vec!["?"; columns].join(","));
        Self {
            columns,
            of_sizes: SIZES.map(|size| format!("{before}{}{after}", vec![&*row; size].join(","))),
        }
    }

    /// Statements for all of `rows`, each with the rows that it takes.
    fn statements<'s, 'r, T>(
        &'s self,
        rows: &'r [T],
    ) -> impl Iterator<Item = (&'s str, SqliteArguments, &'r [T])> {
        let mut left = rows;
        std::iter::from_fn(move || {
            let at = SIZES.iter().position(|&size| size <= left.len())?;
            let (these, rest) = left.split_at(SIZES[at]);
            left = rest;
            let mut arguments = SqliteArguments::default();
            arguments.reserve(these.len() * self.columns, 0);
            Some((&*self.of_sizes[at], arguments, these))
        })
    }
}

/// `cross join` keeps the order: for each given nonce, look into the index.
static KNOWN_NONCES: LazyLock<Rows> = LazyLock::new(|| {
    Rows::new(
        "with given (of, named) as (values ",
        2,
        concat!(
            ") select ",
            log_columns!(),
            " from given cross join log on experiment_id = of and nonce = named"
        ),
    )
});

static INSERT_ENTRIES: LazyLock<Rows> =
    LazyLock::new(|| Rows::new(concat!("insert into log (", log_columns!(), ") values "), 14, ""));

/// From so many entries on they are read together.
const TOGETHER_FROM: u32 = 2000;

/// A page of the log as one JSON array; the columns of [`JsonRow`].
const READ_TOGETHER: &str = "
    select json_group_array(json_array(position, hex(nonce), recorded_at_ms, kind, first_ranker, second_ranker, first_left,
        answer, batch, ticket, chosen_at, issued_at_ms, detail))
    from (select * from log where experiment_id = $1 and position > $2 order by position limit $3)";

/// A row of [`READ_TOGETHER`].
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
            ..,
            detail,
        ) = self;
        let nonce = u128::from_str_radix(nonce, 16).map_err(|_| {
            StoreError::Corrupt(format!(
                "log entry {position} of experiment {experiment_id}: its nonce"
            ))
        })?;
        Ok(LogRow {
            experiment_id,
            position,
            nonce: Uuid::from_u128(nonce),
            recorded_at_ms,
            event: EventColumns {
                kind,
                first_ranker,
                second_ranker,
                first_left: first_left.map(|left| left != 0),
                answer,
                batch: self.8,
                ticket: self.9,
                chosen_at: self.10,
                issued_at_ms: self.11,
                detail,
            },
        })
    }
}

const MOVE_HEADS: &str = "update experiment set head = moved.value ->> 1
     from jsonb_each($1) as moved where experiment.id = moved.value ->> 0";

/// The log entries under these nonces, in no order.
async fn known_nonces(
    connection: &mut SqliteConnection,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let nonces: Vec<_> = nonces.collect();
    let mut known = Vec::new();
    for (statement, mut arguments, nonces) in KNOWN_NONCES.statements(&nonces) {
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

async fn insert_entries(
    connection: &mut SqliteConnection,
    entries: &[(ExperimentId, u64, &NewEvent)],
    recorded_at: i64,
) -> Result<(), StoreError> {
    for (statement, mut arguments, entries) in INSERT_ENTRIES.statements(entries) {
        for (experiment, position, new) in entries {
            bind_entry(
                &mut arguments,
                *experiment,
                counted("position", *position)?,
                new,
                recorded_at,
            )
            .map_err(sqlx::Error::Encode)?;
        }
        sqlx::query_with(AssertSqlSafe(statement), arguments).execute(&mut *connection).await?;
    }
    Ok(())
}

/// In the order of `log_columns!`.
fn bind_entry(
    row: &mut SqliteArguments,
    experiment: ExperimentId,
    position: i64,
    new: &NewEvent,
    recorded_at: i64,
) -> Result<(), BoxDynError> {
    let event = EventColumns::from(&new.event);
    row.add(experiment)?;
    row.add(position)?;
    row.add(Uuid::from_u128(new.nonce))?;
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

/// Rows as a parameter.
fn json(rows: impl Serialize) -> String {
    serde_json::to_string(&rows).expect("numbers, strings and lists always serialise")
}

/// Here and not in the contract is what only the connection itself can be made to do.
#[cfg(test)]
mod tests {
    use super::super::{ControlEvent, Event};
    use super::*;

    async fn store(folder: &tempfile::TempDir) -> (SqliteStore, ExperimentId) {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("test.db"))
            .create_if_missing(true);
        let store = SqliteStore::open(options, false).await.unwrap();
        store.migrate().await.unwrap();
        let new = NewExperiment {
            name: "one".into(),
            spec: "{}".into(),
            seed: 0,
            created_at: 0,
            audit: None,
        };
        let Created::New(record) = store.create_experiment(&new).await.unwrap() else {
            panic!("it is new")
        };
        (store, record.id)
    }

    /// An event of some pages.
    fn large_event(nonce: Nonce) -> NewEvent {
        NewEvent {
            nonce,
            event: Event::Control(ControlEvent::SelfDuels { counts: vec![(0, 1); 1000] }),
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_unavailable_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = store(&folder).await;
        let limit_pages = async |statement: &'static str| {
            sqlx::query_scalar::<_, i64>(statement).fetch_one(&store.writer).await.unwrap()
        };
        assert_eq!(limit_pages("pragma max_page_count = 40").await, 40);
        let mut kept = 0;
        let error = loop {
            match store.append(&[(id, large_event(kept))], 0).await {
                Ok(_) => kept += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(error.to_string().contains("full"), "{error}");

        limit_pages("pragma max_page_count = 4000").await;
        let answers = store.append(&[(id, large_event(kept))], 0).await.unwrap();
        assert_eq!(answers, [Appended::Recorded(kept as u64 + 1)]);
        assert_eq!(store.read(id, 0, 100).await.unwrap().len() as u128, kept + 1);
    }

    #[tokio::test]
    async fn a_transaction_that_sqlite_ended_by_itself_harms_no_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = store(&folder).await;
        for nonce in 1..=3 {
            // as it does when it runs out of memory or cannot write: the driver is not told
            let mut transaction = store.begin().await.unwrap();
            sqlx::query("rollback").execute(&mut *transaction).await.unwrap();
            drop(transaction);
            let answers = store.append(&[(id, large_event(nonce))], 0).await.unwrap();
            assert_eq!(answers, [Appended::Recorded(nonce as u64)]);
        }
    }
}
