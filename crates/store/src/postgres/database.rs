//! [`Database`] for PostgreSQL: schema, health and shutdown.

use std::sync::LazyLock;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use sqlx::{Connection, Executor, PgConnection};

use super::distribute::{distribute, refused};
use super::lease::Pool;
use super::sessions::{PoolMode, connect, require_own_sessions};
use super::store::{Layout, PostgresStore};
use crate::sql::backend::Backend as _;
use crate::sql::statements;
use crate::sql::table_row::Of;
use crate::{Database, Distributed, StoreError, schema};

/// [`schema::compare`] decides on applied migrations that this program does not know.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| schema::migrator(schema::POSTGRES));

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

/// The encoding of a database that can store every text.
const ENCODING: &str = "UTF8";

/// The advisory lock of migrations belongs to a session.
const NOT_POOLED: &str = "not through a pooler, but with the URL of the database itself (or name \
     it with --listen-database-url)";

const ANOTHER_DATABASE: &str = "--listen-database-url leads to another database than \
     --database-url: it must be the URL of the same database without the pooler";

const VERSION_AND_ENCODING: &str = "select current_setting('server_version_num')::integer,
     current_setting('server_encoding')";

const IS_MIGRATED: &str = "select to_regclass('_sqlx_migrations') is not null";

/// Identity of a database, also before it has a schema: the start time of the server, and the
/// number of the database.
const SERVER_AND_DATABASE: &str = "select pg_postmaster_start_time()::text, oid::bigint
     from pg_database where datname = current_database()";

const CLOCK_MS: &str = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";

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
            return self.check().await.map_err(|error| match error {
                StoreError::Schema(what) => StoreError::Schema(format!("{what}; {NOT_POOLED}")),
                other => other,
            });
        };
        // A pooler would keep the lock with a session that goes on to serve others.
        require_own_sessions(direct).await?;
        let mut connection = connect(direct).await?;
        require_supported(sqlx::query_as(VERSION_AND_ENCODING).fetch_one(&mut connection).await?)?;
        if self.mode == PoolMode::Transaction {
            same_database(&mut connection, &self.pool).await?;
        }
        connection.execute(MIGRATION_SETTINGS).await?;
        let layout = self.ask_layout().await?;
        let before = if layout == Layout::ByExperiment {
            applied(&mut connection).await?
        } else {
            Vec::new()
        };
        // the same as `run`, whose future the compiler cannot prove to be `Send` here
        MIGRATIONS.run_direct(None, &mut connection, false).await?;
        let applied = applied(&mut connection).await?;
        if layout == Layout::ByExperiment && applied != before {
            // a migration may have added a table or a function
            distribute(&mut connection).await?;
        }
        connection.close().await?;
        schema::compare(&MIGRATIONS, Some(applied))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.attempt(move || async move {
            if self.mode == PoolMode::Session {
                self.own_sessions.get_or_try_init(|| require_own_sessions(&self.options)).await?;
            }
            require_supported(self.pool.row(sqlx::query(VERSION_AND_ENCODING)).await?)?;
            let (migrated,): (bool,) = self.pool.row(sqlx::query(IS_MIGRATED)).await?;
            let applied = match migrated {
                true => {
                    Some(self.pool.rows(sqlx::query(statements::MIGRATIONS.sql()), Of::Any).await?)
                }
                false => None,
            };
            self.ask_layout().await?;
            schema::compare(&MIGRATIONS, applied)
        })
        .await?;
        let compare = async || match self.require_same_database().await {
            Ok(()) => Ok(true),
            Err(error @ StoreError::AnotherDatabase(_)) => Err(error),
            // polling is enough; it is compared when it can be listened to
            Err(_) => Ok(false),
        };
        self.same_database.get_or_try_init(compare).await.map(drop)
    }

    async fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        let (now,): (i64,) = self.pool.row(sqlx::query(CLOCK_MS)).await?;
        Ok(Some(now))
    }

    async fn distribute(&self) -> Result<Distributed, StoreError> {
        let Some(direct) = &self.direct else {
            return Err(refused(
                "the URL leads to a pooler: use that of the coordinator itself".into(),
            ));
        };
        require_own_sessions(direct).await?;
        let mut connection = connect(direct).await?;
        let distributed = distribute(&mut connection).await?;
        connection.close().await?;
        self.remember_layout(Layout::ByExperiment);
        Ok(distributed)
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        // the server checks its own pages and indexes: checksums, pg_amcheck
        Ok(Vec::new())
    }

    fn foreign_answers(&self) -> u64 {
        self.pool.foreign_answers() + self.appending.foreign_answers()
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
    /// Refuse a URL for listening that leads to another database: its notices would be about other
    /// experiments.
    pub(super) async fn require_same_database(&self) -> Result<(), StoreError> {
        let Some(direct) = self.direct.as_ref().filter(|_| self.has_direct_url) else {
            return Ok(());
        };
        let mut connection = connect(direct).await?;
        same_database(&mut connection, &self.pool).await
    }
}

/// Compare the database of a direct connection with that of a pooler.
async fn same_database(direct: &mut PgConnection, pooled: &Pool) -> Result<(), StoreError> {
    let direct: (String, i64) = sqlx::query_as(SERVER_AND_DATABASE).fetch_one(direct).await?;
    if direct == pooled.row(sqlx::query(SERVER_AND_DATABASE)).await? {
        return Ok(());
    }
    Err(StoreError::AnotherDatabase(ANOTHER_DATABASE))
}

/// The applied migrations: version, checksum and description.
async fn applied(connection: &mut PgConnection) -> Result<Vec<(i64, Vec<u8>, String)>, StoreError> {
    Ok(sqlx::query_as(statements::MIGRATIONS.sql()).persistent(false).fetch_all(connection).await?)
}

fn require_supported((version, encoding): (i32, String)) -> Result<(), StoreError> {
    if version < OLDEST_SERVER {
        return Err(StoreError::Schema(format!(
            "the server is PostgreSQL {}; rankduel needs {} or later",
            version / 10_000,
            OLDEST_SERVER / 10_000
        )));
    }
    if encoding != ENCODING {
        return Err(StoreError::Schema(format!(
            "its encoding is {encoding}, which cannot store every name; rankduel needs {ENCODING} \
             (createdb --encoding {ENCODING} --template template0 NAME)"
        )));
    }
    Ok(())
}
