//! [`Database`] for PostgreSQL: schema, health and shutdown.

use std::sync::LazyLock;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection};

use super::store::PostgresStore;
use crate::store::sql::statements;
use crate::store::{Database, StoreError, schema};

/// [`schema::compare`] decides on applied migrations that this program does not know.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    schema::migrator(&include!(concat!(env!("OUT_DIR"), "/migrations_postgres.rs")))
});

/// The oldest supported version, as `server_version_num` counts.
const OLDEST_SERVER: i32 = 14_00_00;

#[async_trait]
impl Database for PostgresStore {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        // On a connection of its own, without the limits of a session: a second process waits on an
        // advisory lock until the first is done, and migrating a large table takes long. Closing
        // the connection releases the lock.
        let mut connection = self.options.connect().await?;
        require_supported_server(&mut connection).await?;
        connection.execute("set statement_timeout = 0; set lock_timeout = 0;").await?;
        // the same as `run`, whose future the compiler cannot prove to be `Send` here
        MIGRATIONS.run_direct(None, &mut connection, false).await?;
        let applied = sqlx::query_as(statements::MIGRATIONS).fetch_all(&mut connection).await?;
        connection.close().await?;
        schema::compare(&MIGRATIONS, Some(applied))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.attempt(move || async move {
            let mut connection = self.pool.acquire().await?;
            require_supported_server(&mut connection).await?;
            let migrated: bool =
                sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
                    .fetch_one(&mut *connection)
                    .await?;
            let applied = if migrated {
                Some(sqlx::query_as(statements::MIGRATIONS).fetch_all(&mut *connection).await?)
            } else {
                None
            };
            schema::compare(&MIGRATIONS, applied)
        })
        .await
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        // the server checks its own pages and indexes: checksums, pg_amcheck
        Ok(Vec::new())
    }

    async fn close(&self) {
        self.listening.close().await;
        self.appending.close().await;
        self.pool.close().await;
    }
}

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
