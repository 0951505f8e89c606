//! [`Database`] for SQLite: schema, health and shutdown.

use std::sync::LazyLock;

use async_trait::async_trait;
use sqlx::migrate::Migrator;

use super::claim::Claim;
use super::store::SqliteStore;
use crate::sql::statements;
use crate::{Database, StoreError, schema};

/// [`schema::compare`] decides on applied migrations that this program does not know.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| schema::migrator(schema::SQLITE));

#[async_trait]
impl Database for SqliteStore {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn serves_one_process(&self) -> bool {
        true
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        // in one transaction: a second process waits, and finds nothing left to do
        let mut transaction = self.begin_write().await?;
        // the same as `run`, whose future the compiler cannot prove to be `Send` here
        MIGRATIONS.run_direct(None, &mut *transaction, false).await?;
        let applied =
            sqlx::query_as(statements::MIGRATIONS.sql()).fetch_all(&mut *transaction).await?;
        schema::compare(&MIGRATIONS, Some(applied))?;
        Ok(transaction.commit().await?)
    }

    async fn claim(&self) -> Result<(), StoreError> {
        let mut anchor = self.readers.acquire().await?.detach();
        // reading creates the files beside the database
        sqlx::query("select count(*) from sqlite_schema").execute(&mut anchor).await?;
        let claim = Claim::new(&self.path, anchor)?;
        self.claim.set(claim).map_err(|_| StoreError::Files("the file is claimed already".into()))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.check_files()?;
        let migrated: bool = sqlx::query_scalar(
            "select exists (select 1 from sqlite_schema where name = '_sqlx_migrations')",
        )
        .fetch_one(&self.readers)
        .await?;
        let applied = if migrated {
            Some(sqlx::query_as(statements::MIGRATIONS.sql()).fetch_all(&self.readers).await?)
        } else {
            None
        };
        schema::compare(&MIGRATIONS, applied)
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let found: Vec<String> =
            sqlx::query_scalar("pragma integrity_check").fetch_all(&self.readers).await?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    async fn close(&self) {
        if let Some(claim) = self.claim.get() {
            claim.close().await;
        }
        self.readers.close().await;
        self.writer.close().await;
    }
}
