//! The store in PostgreSQL, 14 or later; any number of processes share one database.
//!
//! Appending locks the rows of its experiments, in ascending order so that no two appends wait for
//! each other in a circle. Positions are taken under that lock, so each log is dense and totally
//! ordered whoever appends. After a commit those who listen on the channel [`CHANNEL`] are told
//! which experiments have moved; a notification can be lost, and whoever follows a log must also
//! look from time to time ([`Store::heads`]).
//!
//! Sessions are set up so that a commit is durable whatever the server's default, and so that
//! nothing waits for ever: not for a lock, not for a statement, not for a server that no longer
//! answers. A connection pooler between rankduel and the server must keep a session together
//! (PgBouncer: `pool_mode = session`).

mod appending;
mod telling;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, PgPool};

use self::appending::{Care, LOCK_HEADS, known_nonces, write_entries};
use self::telling::Notifier;
use super::access::{self, ApiKeyRow, AuditRow};
use super::copied;
use super::error::is_worth_another_try;
use super::row::{
    ExperimentRow, HeadRow, LogRow, SigningKeyRow, SnapshotRow, ascending, counted,
    experiment_columns, in_order_of, log_columns, records, sql, status_name,
};
use super::{
    ApiKeyRecord, Appended, AuditNote, AuditRecord, Change, Changed, Created, ExperimentId,
    ExperimentRecord, Head, Imported, LogEntry, NewEvent, NewExperiment, Nonce, Notice, Notices,
    Pages, SigningKey, Snapshot, Store, StoreError, schema,
};

/// The channel of notifications. A payload is `ID HEAD`: an experiment's number and its new head.
pub const CHANNEL: &str = "rankduel";

/// What is there and unknown is judged by [`schema::compare`].
static MIGRATIONS: Migrator =
    Migrator { ignore_missing: true, ..sqlx::migrate!("migrations/postgres") };

/// The oldest version, as the server counts (`server_version_num`).
const OLDEST_SERVER: i32 = 14_00_00;
/// Connections of one process, at most: those for appending, and for all else.
const APPENDING: u32 = 3;
const OTHER: u32 = 7;
/// How long a call waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that nobody has used for so long is asked whether it still is one.
const ASK_FROM: Duration = Duration::from_millis(100);
/// How long a whole call takes, at most. The server's own limits below come first; this one is for
/// a server that has fallen silent.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// From so many entries on they are read by a copy.
const COPY_FROM: u32 = 2000;
/// How often a transaction that the server broke off (deadlock, serialisation) is tried in all.
const TRIES: u32 = 4;

/// Positions that one statement of a pruning forgets.
const PRUNE_STEP: i64 = 10_000;

/// What every session starts with. `synchronous_commit` is raised to `on` and never lowered:
/// `remote_apply` waits for more. Just-in-time compilation would cost more than it saves on each
/// large append.
///
/// Every statement here finds its rows by an index, and in its order. The planner is told to take
/// no other way, because it errs while a log is young: without statistics it reads and sorts the
/// rest of a log for each page of it.
const SESSION: &str = "
    set statement_timeout = '15s';
    set lock_timeout = '5s';
    set idle_in_transaction_session_timeout = '15s';
    set default_transaction_isolation = 'read committed';
    set jit = off;
    set enable_seqscan = off;
    set enable_bitmapscan = off;
    set enable_sort = off;
    set enable_hashjoin = off;
    set enable_mergejoin = off;
    select set_config('synchronous_commit', 'on', false)
        where current_setting('synchronous_commit') not in ('on', 'remote_apply');
";

/// A [`Store`] in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    options: PgConnectOptions,
    pool: PgPool,
    /// Appends come one after the other, so that one connection makes nearly all of them: the
    /// server has it warm.
    appending: PgPool,
    /// One connection, which listens.
    listening: PgPool,
    sessions: Sessions,
    care: Care,
    teller: Notifier,
}

/// The server processes of the pool's connections, newest last, so that a notice of an own commit
/// is known as such: whoever committed folds what it wrote without being told. A number that the
/// server has given to somebody else since only makes a notice go unheard.
#[derive(Debug, Clone, Default)]
struct Sessions(Arc<Mutex<VecDeque<u32>>>);

impl Sessions {
    fn remember(&self, process: u32) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back(process);
        if known.len() > 2 * (APPENDING + OTHER) as usize {
            known.pop_front();
        }
    }

    fn knows(&self, process: u32) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&process)
    }
}

/// What the channel says, without this store's own commits.
struct Listener {
    listener: PgListener,
    sessions: Sessions,
}

#[async_trait]
impl Notices for Listener {
    async fn next(&mut self) -> Result<Option<Notice>, StoreError> {
        loop {
            let Some(notification) = self.listener.try_recv().await? else { return Ok(None) };
            if self.sessions.knows(notification.process_id()) {
                continue;
            }
            // a payload that this program does not know says at least that something happened
            return Ok(notification.payload().split_once(' ').and_then(|(experiment, head)| {
                Some(Notice { experiment: experiment.parse().ok()?, head: head.parse().ok()? })
            }));
        }
    }
}

impl PostgresStore {
    /// A store that connects when it is first called. Needs a runtime.
    pub(super) fn new(options: PgConnectOptions) -> Self {
        let sessions = Sessions::default();
        let pool = pool_of(OTHER, &options, &sessions);
        let appending = pool_of(APPENDING, &options, &sessions);
        let listening = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options.clone());
        let teller = Notifier::start(pool.clone());
        Self { options, pool, appending, listening, sessions, care: Care::default(), teller }
    }

    /// Forget some of the entries up to position `to`; whether there were any.
    async fn forget_entries(&self, experiment: ExperimentId, to: i64) -> Result<bool, StoreError> {
        let first: Option<i64> = sqlx::query_scalar(sql::FIRST_ENTRY)
            .bind(experiment)
            .fetch_optional(&self.pool)
            .await?;
        let Some(first) = first.filter(|first| *first <= to) else { return Ok(false) };
        let step = sqlx::query(sql::FORGET_ENTRIES)
            .bind(experiment)
            .bind(to.min(first.saturating_add(PRUNE_STEP)));
        step.execute(&self.pool).await?;
        Ok(true)
    }

    /// Many entries at once, as [`Store::read`]: a row of a query costs the driver more than the
    /// server, a row of a copy next to nothing.
    async fn read_copy(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        // a copy takes no parameters; these are numbers
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let statement = &format!(
            "copy (select {} from log where experiment_id = {experiment} and position > {after} \
             order by position limit {limit}) to stdout (format binary)",
            log_columns!()
        );
        self.call(move || async move {
            let mut connection = self.pool.acquire().await?;
            let mut stream = connection.copy_out_raw(statement).await?;
            let mut data = Vec::new();
            while let Some(part) = stream.try_next().await? {
                data.extend_from_slice(&part);
            }
            copied::entries(&data)
        })
        .await
    }

    /// Run a call: again when the server broke it off to break a deadlock, and not for ever.
    async fn call<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        let attempts = async {
            for _ in 1..TRIES {
                match attempt().await {
                    Err(error) if is_worth_another_try(&error) => {}
                    answer => return answer,
                }
            }
            attempt().await
        };
        tokio::time::timeout(CALL_TIMEOUT, attempts).await.unwrap_or_else(|_| {
            let silent = format!("no answer within {} s", CALL_TIMEOUT.as_secs());
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, silent)).into())
        })
    }
}

/// So many connections at most, made when they are needed.
fn pool_of(connections: u32, options: &PgConnectOptions, sessions: &Sessions) -> PgPool {
    let sessions = sessions.clone();
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // what was in use a moment ago is taken to be well: a trip to find out costs as much as a
        // short call
        .test_before_acquire(false)
        .before_acquire(|connection, state| {
            Box::pin(
                async move { Ok(state.idle_for < ASK_FROM || connection.ping().await.is_ok()) },
            )
        })
        .after_connect(move |connection, _| {
            let sessions = sessions.clone();
            Box::pin(async move {
                connection.execute(SESSION).await?;
                let process: i32 =
                    sqlx::query_scalar("select pg_backend_pid()").fetch_one(connection).await?;
                sessions.remember(process.cast_unsigned());
                Ok(())
            })
        })
        .connect_lazy_with(options.clone())
}

#[async_trait]
impl Store for PostgresStore {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        // On a connection of its own and without the limits of a session: whoever comes second
        // waits on an advisory lock until the first is done, and a large table takes its time.
        // Closing the connection gives up the lock.
        let mut connection = self.options.connect().await?;
        require_supported_server(&mut connection).await?;
        connection.execute("set statement_timeout = 0; set lock_timeout = 0;").await?;
        // `run` says the same, but its future cannot be proven `Send` inside this one
        MIGRATIONS.run_direct(None, &mut connection, false).await?;
        let applied = sqlx::query_as(sql::MIGRATIONS).fetch_all(&mut connection).await?;
        connection.close().await?;
        schema::compare(&MIGRATIONS, Some(applied))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.call(move || async move {
            let mut connection = self.pool.acquire().await?;
            require_supported_server(&mut connection).await?;
            let migrated: bool =
                sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
                    .fetch_one(&mut *connection)
                    .await?;
            let applied = if migrated {
                Some(sqlx::query_as(sql::MIGRATIONS).fetch_all(&mut *connection).await?)
            } else {
                None
            };
            schema::compare(&MIGRATIONS, applied)
        })
        .await
    }

    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            let created: Option<ExperimentRow> = sqlx::query_as(sql::CREATE_EXPERIMENT)
                .bind(&new.name)
                .bind(&new.spec)
                .bind(new.seed.cast_signed())
                .bind(new.created_at)
                .fetch_optional(&mut *transaction)
                .await?;
            let answer = match created {
                Some(row) => {
                    access::postgres::add_notes(&mut transaction, &new.audit).await?;
                    Created::New(row.try_into()?)
                }
                None => {
                    let row: ExperimentRow = sqlx::query_as(sql::EXPERIMENT)
                        .bind(&new.name)
                        .fetch_one(&mut *transaction)
                        .await?;
                    Created::Taken(row.try_into()?)
                }
            };
            transaction.commit().await?;
            Ok(answer)
        })
        .await
    }

    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError> {
        self.call(move || async move {
            let row: Option<ExperimentRow> =
                sqlx::query_as(sql::EXPERIMENT).bind(name).fetch_optional(&self.pool).await?;
            row.map(TryInto::try_into).transpose()
        })
        .await
    }

    async fn experiments(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError> {
        self.call(move || async move {
            let query = match after {
                None => sqlx::query_as(sql::EXPERIMENTS),
                Some(after) => sqlx::query_as(sql::EXPERIMENTS_AFTER).bind(after),
            };
            let rows: Vec<ExperimentRow> =
                query.bind(i64::from(limit)).fetch_all(&self.pool).await?;
            records(rows)
        })
        .await
    }

    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        self.call(move || async move {
            let rows: Vec<HeadRow> = sqlx::query_as(HEADS)
                .bind(ascending(experiments.iter().copied()))
                .fetch_all(&self.pool)
                .await?;
            records(rows)
        })
        .await
    }

    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError> {
        let event = &event;
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            let row: Option<ExperimentRow> = sqlx::query_as(LOCK_EXPERIMENT)
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
            let heads = BTreeMap::from([(experiment, after.head)]);
            write_entries(
                &mut transaction,
                &[(experiment, after.head, event)],
                &heads,
                recorded_at,
            )
            .await?;
            access::postgres::add_notes(&mut transaction, &change.audit).await?;
            transaction.commit().await?;
            self.teller.tell(experiment, after.head);
            Ok(Changed::Done(after))
        })
        .await
    }

    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        self.call(|| self.append_to(events, recorded_at)).await
    }

    async fn read(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        if limit >= COPY_FROM {
            return self.read_copy(experiment, after, limit).await;
        }
        self.call(move || async move {
            let rows: Vec<LogRow> = sqlx::query_as(sql::READ)
                .bind(experiment)
                .bind(i64::try_from(after).unwrap_or(i64::MAX))
                .bind(i64::from(limit))
                .fetch_all(&self.pool)
                .await?;
            records(rows)
        })
        .await
    }

    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        self.call(move || async move {
            // as an append that finds everything there: the lock gives the commit something to wait
            // for
            let mut transaction = self.pool.begin().await?;
            sqlx::query(LOCK_HEADS).bind(vec![experiment]).execute(&mut *transaction).await?;
            let known =
                known_nonces(&mut transaction, nonces.iter().map(|nonce| (experiment, *nonce)))
                    .await?;
            transaction.commit().await?;
            Ok(in_order_of(nonces, known))
        })
        .await
    }

    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let position = counted("snapshot position", snapshot.position)?;
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
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
        })
        .await
    }

    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError> {
        self.call(move || async move {
            let row: Option<SnapshotRow> = sqlx::query_as(sql::NEWEST_SNAPSHOT)
                .bind(experiment)
                .bind(i64::from(format))
                .fetch_optional(&self.pool)
                .await?;
            row.map(TryInto::try_into).transpose()
        })
        .await
    }

    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError> {
        self.call(move || async move {
            let rows: Vec<SnapshotRow> =
                sqlx::query_as(sql::SNAPSHOTS).bind(experiment).fetch_all(&self.pool).await?;
            records(rows)
        })
        .await
    }

    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        let mut listener = PgListener::connect_with(&self.listening).await?;
        listener.listen(CHANNEL).await?;
        Ok(Some(Box::new(Listener { listener, sessions: self.sessions.clone() })))
    }

    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        self.call(move || async move {
            Ok(sqlx::query_scalar(sql::NAMES)
                .bind(after)
                .bind(i64::from(limit))
                .fetch_all(&self.pool)
                .await?)
        })
        .await
    }

    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        let to = counted("position", to)?;
        let allowed = self
            .call(move || async move {
                let mut transaction = self.pool.begin().await?;
                let query =
                    sqlx::query(sql::PRUNE).bind(experiment).bind(to).bind(i64::from(format));
                if query.execute(&mut *transaction).await?.rows_affected() == 0 {
                    return Ok(false);
                }
                access::postgres::add_notes(&mut transaction, [audit]).await?;
                transaction.commit().await?;
                Ok(true)
            })
            .await?;
        if !allowed {
            return Ok(false);
        }
        // in steps, each within the limits of a statement; whoever is interrupted can start again
        while self.call(move || self.forget_entries(experiment, to)).await? {}
        Ok(true)
    }

    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        pages: Pages<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Imported, StoreError> {
        let mut transaction = self.pool.begin().await?;
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
                let heads = BTreeMap::from([(imported.id, record.head)]);
                write_entries(&mut transaction, &entries, &heads, together[0].recorded_at).await?;
            }
        }
        access::postgres::add_notes(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Imported::New(imported))
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        // checking pages and indexes is the server's own business: checksums, pg_amcheck
        Ok(Vec::new())
    }

    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        self.call(move || async move {
            let rows: Vec<SigningKeyRow> =
                sqlx::query_as(sql::SIGNING_KEYS).fetch_all(&self.pool).await?;
            records(rows)
        })
        .await
    }

    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError> {
        let keys = self.signing_keys().await?;
        if !keys.is_empty() {
            return Ok(keys);
        }
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            // "if there is none" cannot be a constraint: only one at a time may look and add
            sqlx::query("lock table signing_key in share row exclusive mode")
                .execute(&mut *transaction)
                .await?;
            sqlx::query(sql::ENSURE_SIGNING_KEY)
                .bind(i64::from(key.id))
                .bind(key.secret.as_slice())
                .bind(key.created_at)
                .bind(key.active_from)
                .execute(&mut *transaction)
                .await?;
            Ok(transaction.commit().await?)
        })
        .await?;
        self.signing_keys().await
    }

    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            sqlx::query(sql::ADD_SIGNING_KEY)
                .bind(i64::from(key.id))
                .bind(key.secret.as_slice())
                .bind(key.created_at)
                .bind(key.active_from)
                .execute(&mut *transaction)
                .await?;
            access::postgres::add_notes(&mut transaction, [audit]).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            let query = sqlx::query(sql::REMOVE_SIGNING_KEY).bind(i64::from(id));
            if query.execute(&mut *transaction).await?.rows_affected() == 0 {
                return Ok(false);
            }
            access::postgres::add_notes(&mut transaction, [audit]).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.call(move || async move {
            let rows: Vec<ApiKeyRow> =
                sqlx::query_as(access::sql::API_KEYS).fetch_all(&self.pool).await?;
            records(rows)
        })
        .await
    }

    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            access::postgres::add_key(&mut transaction, key, ends).await?;
            access::postgres::add_notes(&mut transaction, [audit]).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            let revoked = sqlx::query(access::sql::REVOKE_API_KEY)
                .bind(id)
                .bind(at)
                .execute(&mut *transaction)
                .await?;
            if revoked.rows_affected() == 0 {
                return Ok(false);
            }
            access::postgres::add_notes(&mut transaction, [audit]).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            access::postgres::note_uses(&mut transaction, uses).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    async fn add_audit(&self, notes: &[AuditNote]) -> Result<(), StoreError> {
        self.call(move || async move {
            let mut transaction = self.pool.begin().await?;
            access::postgres::add_notes(&mut transaction, notes).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        self.call(move || async move {
            let query = match experiment {
                None => sqlx::query_as(access::sql::AUDIT).bind(before).bind(i64::from(limit)),
                Some(name) => sqlx::query_as(access::sql::AUDIT_OF_EXPERIMENT)
                    .bind(before)
                    .bind(i64::from(limit))
                    .bind(name),
            };
            let rows: Vec<AuditRow> = query.fetch_all(&self.pool).await?;
            records(rows)
        })
        .await
    }

    async fn close(&self) {
        self.listening.close().await;
        self.appending.close().await;
        self.pool.close().await;
    }
}

const HEADS: &str =
    "select id, version, head, archived_at_ms is not null as archived from experiment
     where id = any($1) order by id";

const LOCK_EXPERIMENT: &str =
    concat!("select ", experiment_columns!(), " from experiment where id = $1 for no key update");

async fn require_supported_server(connection: &mut PgConnection) -> Result<(), StoreError> {
    let version: i32 = sqlx::query_scalar("select current_setting('server_version_num')::integer")
        .fetch_one(connection)
        .await?;
    if version >= OLDEST_SERVER {
        return Ok(());
    }
    Err(StoreError::Schema(format!(
        "the server is PostgreSQL {}; rankduel needs {} or later",
        version / 10_000,
        OLDEST_SERVER / 10_000
    )))
}
