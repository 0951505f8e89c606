//! [`Database`] for PostgreSQL: schema, health and shutdown.

use std::sync::LazyLock;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use sqlx::{Connection, Executor, PgConnection, Postgres};

use super::distribute::distribute;
use super::layout::Layout;
use super::migration_watch::watch;
use super::pool_mode::PoolMode;
use super::pooler::require_own_sessions;
use super::sessions::connect;
use super::store::PostgresStore;
use crate::store::member::require_alone;
use crate::store::sql::statements;
use crate::store::{Database, Distributed, StoreError, schema};

/// [`schema::compare`] decides on applied migrations that this program does not know.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    schema::migrator(&include!(concat!(env!("OUT_DIR"), "/migrations_postgres.rs")))
});

/// The settings of a session that migrates. If its process is stopped, the server ends it within a
/// second, also while it waits for a lock: in the queue it would block everybody behind it. Some
/// systems cannot check connections and refuse the setting.
const MIGRATION_SETTINGS: &str = "
    set statement_timeout = 0;
    set lock_timeout = 0;
    do $$ begin
        set client_connection_check_interval = '1s';
    exception when others then null;
    end $$;
";

/// The oldest supported version, as `server_version_num` counts.
const OLDEST_SERVER: i32 = 14_00_00;

/// The advisory lock of migrations belongs to a session.
const NOT_POOLED: &str = "not through a pooler, but with the URL of the database itself (or name \
     it with --listen-database-url)";

const ANOTHER_DATABASE: &str = "--listen-database-url leads to another database than \
     --database-url: it must be the URL of the same database without the pooler";

/// What tells databases apart also before they have a schema: when the server started, and the
/// number of the database.
const SERVER_AND_DATABASE: &str = "select pg_postmaster_start_time()::text, oid::bigint
     from pg_database where datname = current_database()";

#[async_trait]
impl Database for PostgresStore {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn serves_one_process(&self) -> bool {
        false
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        // On a connection of its own, without the limits of a session: a second process waits on an
        // advisory lock until the first is done, and migrating a large table takes long. Closing
        // the connection releases the lock.
        let direct = match self.mode {
            // not through the URL for listening, which may be wrong
            PoolMode::Session => Some(&self.options),
            PoolMode::Transaction => self.direct.as_ref(),
        };
        let Some(direct) = direct else {
            return self.compare_schema().await.map_err(|error| match error {
                StoreError::Schema(what) => StoreError::Schema(format!("{what}; {NOT_POOLED}")),
                other => other,
            });
        };
        // A pooler would keep the lock with a session that goes on to serve others.
        require_own_sessions(direct).await?;
        let mut connection = connect(direct).await?;
        require_supported_server(&mut connection).await?;
        if self.mode == PoolMode::Transaction {
            let direct: (String, i64) =
                sqlx::query_as(SERVER_AND_DATABASE).fetch_one(&mut connection).await?;
            if direct != sqlx::query_as(SERVER_AND_DATABASE).fetch_one(self.readers()).await? {
                return Err(StoreError::Set(ANOTHER_DATABASE.into()));
            }
        }
        connection.execute(MIGRATION_SETTINGS).await?;
        let backend =
            sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await?;
        let layout = self.ask_layout().await?;
        let before = if layout == Layout::ByExperiment {
            applied(&mut connection).await?
        } else {
            Vec::new()
        };
        tokio::select! {
            biased;
            // the same as `run`, whose future the compiler cannot prove to be `Send` here
            migrated = MIGRATIONS.run_direct(None, &mut connection, false) => migrated?,
            error = watch(direct, backend) => return Err(error),
        }
        let applied = applied(&mut connection).await?;
        if layout == Layout::ByExperiment && applied != before {
            // a migration may have added a table or a function
            distribute(&mut connection).await?;
        }
        connection.close().await?;
        schema::compare(&MIGRATIONS, Some(applied))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.compare_schema().await?;
        require_alone(self).await
    }

    async fn distribute(&self) -> Result<Distributed, StoreError> {
        self.distribute_by_experiment().await
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        // the server checks its own pages and indexes: checksums, pg_amcheck
        Ok(Vec::new())
    }

    async fn close(&self) {
        if let Some(listening) = &self.listening {
            listening.close().await;
        }
        self.appending.close().await;
        self.pool.close().await;
    }
}

impl PostgresStore {
    pub(super) async fn compare_schema(&self) -> Result<(), StoreError> {
        self.attempt(move || async move {
            if self.mode == PoolMode::Session {
                self.own_sessions.get_or_try_init(|| require_own_sessions(&self.options)).await?;
            }
            let mut transaction = self.begin().await?;
            require_supported_server(&mut *transaction).await?;
            let migrated: bool =
                sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
                    .fetch_one(&mut *transaction)
                    .await?;
            let applied = if migrated {
                Some(sqlx::query_as(statements::MIGRATIONS).fetch_all(&mut *transaction).await?)
            } else {
                None
            };
            transaction.commit().await?;
            self.ask_layout().await?;
            schema::compare(&MIGRATIONS, applied)
        })
        .await?;
        let compare = async || match self.require_same_database().await {
            Ok(()) => Ok(true),
            Err(error @ StoreError::Set(_)) => Err(error),
            // polling is enough; it is compared when it can be listened to
            Err(_) => Ok(false),
        };
        self.same_database.get_or_try_init(compare).await.map(drop)
    }

    /// Refuse a URL for listening that leads to another database: its notices would be about other
    /// experiments.
    pub(super) async fn require_same_database(&self) -> Result<(), StoreError> {
        let Some(direct) = self.direct.as_ref().filter(|_| self.has_direct_url) else {
            return Ok(());
        };
        // the first column is the identity
        let own: Vec<u8> = sqlx::query_scalar(statements::SET).fetch_one(self.readers()).await?;
        let mut connection = connect(direct).await?;
        let found = sqlx::query_scalar(statements::SET).fetch_one(&mut connection).await;
        match found.map_err(StoreError::from) {
            Ok(other) if own == other => Ok(()),
            // without the table, it is not a database of rankduel
            Ok::<Vec<u8>, _>(_) | Err(StoreError::Schema(_)) => {
                Err(StoreError::Set(ANOTHER_DATABASE.into()))
            }
            Err(error) => Err(error),
        }
    }
}

/// The applied migrations: version, checksum and description.
async fn applied(connection: &mut PgConnection) -> Result<Vec<(i64, Vec<u8>, String)>, StoreError> {
    Ok(sqlx::query_as(statements::MIGRATIONS).fetch_all(connection).await?)
}

async fn require_supported_server<'c>(
    connection: impl Executor<'c, Database = Postgres>,
) -> Result<(), StoreError> {
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
