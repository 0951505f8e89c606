//! Transactions, with or without a pooler in between.

use super::copy;
use super::lease::{Lease, Pool, Proof, Query, closed};
use super::statements::{COPY_ROWS, INSERT_ROW, LOCK_SIGNING_KEYS};
use crate::sql::backend::Transaction;
use crate::sql::log_row::LogRow;
use crate::sql::statement::Statement;
use crate::sql::table_row::{Of, Record};
use crate::sql::value::{Value, bind_all};
use crate::{LogEntry, StoreError};

/// A transaction. Rolled back unless it is committed.
#[derive(Debug)]
pub(crate) struct PgTransaction {
    /// `None` after an error.
    lease: Option<Lease>,
}

impl PgTransaction {
    /// Begin a transaction on a connection of the pool.
    pub(super) async fn begin(pool: &Pool) -> Result<Self, StoreError> {
        Ok(Self { lease: Some(pool.begin().await?) })
    }

    /// `COMMIT` or `ROLLBACK`.
    pub async fn end(mut self, how: &str) -> Result<(), StoreError> {
        self.lease()?.prove(how.into()).await.map(Lease::give_back)
    }

    fn lease(&mut self) -> Result<Lease, StoreError> {
        self.lease.take().ok_or_else(closed)
    }

    fn keep<T>(&mut self, (lease, result): (Lease, T)) -> T {
        self.lease = Some(lease);
        result
    }

    /// The rows of a query.
    pub async fn rows<R: Record>(&mut self, query: Query, of: Of) -> Result<Vec<R>, StoreError> {
        let answered = self.lease()?.rows(query, of, Proof::Later).await?;
        Ok(self.keep(answered))
    }

    /// Run a query. Returns the number of affected rows.
    pub async fn execute(&mut self, query: Query) -> Result<u64, StoreError> {
        let answered = self.lease()?.execute(query, Proof::Later).await?;
        Ok(self.keep(answered))
    }

    /// Write log rows by a copy.
    pub async fn copy_rows(&mut self, rows: &[LogRow]) -> Result<(), StoreError> {
        let data = copy::write(rows, LogRow::COLUMNS.len(), LogRow::write_copy)?;
        let answered = self
            .lease()?
            .run(|connection| {
                Box::pin(async move {
                    let mut copy = connection.copy_in_raw(COPY_ROWS.sql()).await?;
                    copy.send(data).await?;
                    copy.finish().await?;
                    Ok(())
                })
            })
            .await?;
        self.keep(answered);
        Ok(())
    }

    /// The log entries that a copy writes.
    pub async fn copied_entries(
        &mut self,
        statement: String,
        of: Of,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let answered = self.lease()?.copied_entries(statement, of).await?;
        Ok(self.keep(answered))
    }
}

impl Drop for PgTransaction {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.roll_back();
        }
    }
}

impl Transaction for PgTransaction {
    async fn fetch<R: Record>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<R>, StoreError> {
        let query = bind_all!(sqlx::query(statement.sql()), values);
        self.rows(query, statement.answers_about(values)).await
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
        self.end("COMMIT").await
    }
}
