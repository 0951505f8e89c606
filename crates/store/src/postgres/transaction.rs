//! Transactions and single statements, with or without a pooler in between.

use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, Postgres};

use super::copy;
use super::sessions::{PoolMode, begin_pooled};
use super::statements::{COPY_ROWS, INSERT_ROW, LOCK_SIGNING_KEYS};
use crate::StoreError;
use crate::sql::backend::Transaction;
use crate::sql::log_row::LogRow;
use crate::sql::statement::Statement;
use crate::sql::table_row::Record;
use crate::sql::value::{Value, bind_all};

/// A transaction. Rolled back unless it is committed.
#[derive(Debug)]
pub(crate) struct PgTransaction<'c> {
    transaction: sqlx::Transaction<'c, Postgres>,
    mode: PoolMode,
}

impl PgTransaction<'static> {
    /// Begin a transaction on a connection of the pool.
    pub async fn begin(pool: &PgPool, mode: PoolMode) -> Result<Self, StoreError> {
        let transaction = match mode {
            PoolMode::Session => pool.begin().await?,
            PoolMode::Transaction => pool.begin_with(AssertSqlSafe(begin_pooled())).await?,
        };
        Ok(Self { transaction, mode })
    }
}

impl<'c> PgTransaction<'c> {
    /// Begin a transaction on this connection.
    pub async fn begin_on(
        connection: &'c mut PgConnection,
        mode: PoolMode,
    ) -> Result<Self, StoreError> {
        let transaction = match mode {
            PoolMode::Session => connection.begin().await?,
            PoolMode::Transaction => connection.begin_with(AssertSqlSafe(begin_pooled())).await?,
        };
        Ok(Self { transaction, mode })
    }

    pub async fn rollback(self) -> Result<(), StoreError> {
        Ok(self.transaction.rollback().await?)
    }

    /// The connection, for copies.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// The rows of a query.
    pub async fn rows<R: Record>(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<R>, StoreError> {
        let query = query.persistent(self.mode == PoolMode::Session);
        R::read_all(query.fetch_all(&mut *self.transaction).await?)
    }

    /// Run a query. Returns the number of affected rows.
    pub async fn execute(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<u64, StoreError> {
        let query = query.persistent(self.mode == PoolMode::Session);
        Ok(query.execute(&mut *self.transaction).await?.rows_affected())
    }

    /// Write log rows by a copy.
    pub async fn copy_rows(&mut self, rows: &[LogRow]) -> Result<(), StoreError> {
        let mut copy = self.connection().copy_in_raw(COPY_ROWS.sql()).await?;
        copy.send(copy::write(rows)?).await?;
        copy.finish().await?;
        Ok(())
    }
}

impl Transaction for PgTransaction<'_> {
    async fn fetch<R: Record>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<R>, StoreError> {
        self.rows(bind_all!(sqlx::query(statement.sql()), values)).await
    }

    async fn run(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        self.execute(bind_all!(sqlx::query(statement.sql()), values)).await
    }

    async fn insert_rows(&mut self, rows: &[LogRow]) -> Result<(), StoreError> {
        match rows {
            [row] => self.run(&INSERT_ROW, &row.values()).await.map(drop),
            rows => self.copy_rows(rows).await,
        }
    }

    async fn lock_signing_keys(&mut self) -> Result<(), StoreError> {
        self.run(&LOCK_SIGNING_KEYS, &[]).await.map(drop)
    }

    async fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit().await?)
    }
}

/// Runs each statement in a transaction of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleStatements<'p> {
    pub pool: &'p PgPool,
    pub mode: PoolMode,
}

impl SingleStatements<'_> {
    /// The rows of a query.
    pub async fn rows<R: Record>(
        self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<R>, StoreError> {
        if self.mode == PoolMode::Session {
            return R::read_all(query.fetch_all(self.pool).await?);
        }
        let mut transaction = PgTransaction::begin(self.pool, self.mode).await?;
        let rows = transaction.rows(query).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// The only row of a query.
    pub async fn row<R: Record>(
        self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<R, StoreError> {
        self.rows(query).await?.pop().ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Run a query. Returns the number of affected rows.
    pub async fn execute(self, query: Query<'_, Postgres, PgArguments>) -> Result<u64, StoreError> {
        if self.mode == PoolMode::Session {
            return Ok(query.execute(self.pool).await?.rows_affected());
        }
        let mut transaction = PgTransaction::begin(self.pool, self.mode).await?;
        let affected = transaction.execute(query).await?;
        transaction.commit().await?;
        Ok(affected)
    }
}
