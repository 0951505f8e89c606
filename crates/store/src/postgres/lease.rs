//! Connections that calls take from a pool, and the proof that an answer belongs to its question.
//!
//! The driver counts the answers that a connection still owes. If a call of the driver is dropped
//! half-way, its count can be wrong, and the next caller reads the rows of another question.
//! Therefore:
//!
//! 1. Each call of the driver runs in a task of its own, to its end or to [`CALL_TIMEOUT`], whether
//!    or not somebody still waits for the result.
//! 2. A connection is closed unless it is given back. It is given back only after a call that
//!    succeeded and that proved its answer: the connection returned a number that only this call
//!    has.
//! 3. Rows of an experiment carry its id, which is compared with the id that was asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool, Postgres, Row as _};
use tokio::runtime::Handle;
use tracing::Instrument as _;

use super::copy;
use super::sessions::{self, PoolMode, begin_pooled};
use crate::sql::log_row::LogRow;
use crate::sql::rows::decoded;
use crate::sql::table_row::{Of, Record};
use crate::{LogEntry, StoreError, within};

/// Time limit of a call of the driver, and of a whole operation of the store. The server's own
/// limits come first; this one is for a server that no longer responds.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const NO_PROOF: &str = "it lacks the number of this call";

/// A query with its values.
pub(super) type Query = sqlx::query::Query<'static, Postgres, PgArguments>;

/// A pool of connections.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    connections: PgPool,
    mode: PoolMode,
    proofs: Arc<Proofs>,
}

/// The numbers that prove answers.
#[derive(Debug, Default)]
struct Proofs {
    last: AtomicI64,
    /// Answers that were refused because they belong to another question.
    foreign: AtomicU64,
}

impl Pool {
    /// A pool that connects when a connection is needed.
    pub fn new(max_connections: u32, options: &PgConnectOptions, mode: PoolMode) -> Self {
        let connections = sessions::pool(max_connections, options, mode);
        Self { connections, mode, proofs: Arc::default() }
    }

    /// The number of answers that were refused because they belong to another question.
    pub fn foreign_answers(&self) -> u64 {
        self.proofs.foreign.load(Ordering::Relaxed)
    }

    /// Take a connection. Waiting for one is no call of the driver: a caller that is dropped loses
    /// its place.
    pub async fn take(&self) -> Result<Lease, StoreError> {
        let connection = Some(self.connections.acquire().await?);
        Ok(Lease { connection, proofs: Arc::clone(&self.proofs), mode: self.mode })
    }

    /// Take a connection, and begin a transaction on it.
    pub async fn begin(&self) -> Result<Lease, StoreError> {
        let begin = match self.mode {
            PoolMode::Session => "BEGIN".into(),
            PoolMode::Transaction => begin_pooled(),
        };
        self.take().await?.prove(begin).await
    }

    /// The rows of a query, which runs in a transaction of its own.
    pub async fn rows<R: Record>(&self, query: Query, of: Of) -> Result<Vec<R>, StoreError> {
        if self.mode == PoolMode::Transaction {
            let (lease, rows) = self.begin().await?.rows(query, of, Proof::Later).await?;
            lease.prove("COMMIT".into()).await?.give_back();
            return Ok(rows);
        }
        let (lease, rows) = self.take().await?.rows(query, of, Proof::Asked).await?;
        lease.give_back();
        Ok(rows)
    }

    /// The result of `read` on the answer to a query that returns the number it was given, which
    /// saves a trip to the server. `None`: the number is missing.
    pub async fn proven<R: Record, T>(
        &self,
        query: impl FnOnce(i64) -> Result<Query, StoreError>,
        read: impl FnOnce(i64, Vec<R>) -> Option<T>,
    ) -> Result<T, StoreError> {
        let number = self.proofs.next();
        let query = query(number)?;
        if self.mode == PoolMode::Transaction {
            let rows = self.rows(query, Of::Any).await?;
            return read(number, rows).ok_or_else(|| self.proofs.refuse(NO_PROOF));
        }
        let (lease, rows) = self.take().await?.rows(query, Of::Any, Proof::Later).await?;
        let answer = read(number, rows).ok_or_else(|| self.proofs.refuse(NO_PROOF))?;
        lease.give_back();
        Ok(answer)
    }

    /// The only row of a query.
    pub async fn row<R: Record>(&self, query: Query) -> Result<R, StoreError> {
        let rows = self.rows(query, Of::Any).await?;
        rows.into_iter().next().ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Run a query in a transaction of its own. Returns the number of affected rows.
    pub async fn execute(&self, query: Query) -> Result<u64, StoreError> {
        if self.mode == PoolMode::Transaction {
            let (lease, affected) = self.begin().await?.execute(query, Proof::Later).await?;
            lease.prove("COMMIT".into()).await?.give_back();
            return Ok(affected);
        }
        let (lease, affected) = self.take().await?.execute(query, Proof::Asked).await?;
        lease.give_back();
        Ok(affected)
    }

    /// Close the connections once the running calls are done.
    pub async fn close(&self) {
        self.connections.close().await;
    }
}

impl Proofs {
    fn next(&self) -> i64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn refuse(&self, why: &str) -> StoreError {
        self.foreign.fetch_add(1, Ordering::Relaxed);
        StoreError::Foreign(why.into())
    }

    /// Run a statement, and have the connection return a number that only this call has: one trip
    /// to the server.
    async fn prove(&self, connection: &mut PgConnection, run: &str) -> Result<(), StoreError> {
        let number = self.next();
        let sql = AssertSqlSafe(format!("{run}; select {number}::bigint"));
        let rows = connection.fetch_all(sql).await?;
        match rows.last().map(|row| row.try_get::<i64, _>(0)) {
            Some(Ok(answer)) if answer == number => Ok(()),
            _ => Err(self.refuse(NO_PROOF)),
        }
    }
}

/// When an answer is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// By a trip to the server after the query, before a row is looked at.
    Asked,
    /// By the end of the transaction, or by the rows themselves.
    Later,
}

/// A connection of a pool. It is closed unless it is given back.
#[derive(Debug)]
pub(super) struct Lease {
    connection: Option<PoolConnection<Postgres>>,
    proofs: Arc<Proofs>,
    mode: PoolMode,
}

impl Lease {
    /// Call the driver, to its end or to [`CALL_TIMEOUT`], also if this future is dropped. After
    /// an error the connection is closed.
    pub async fn run<T: Send + 'static>(
        mut self,
        call: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, StoreError>>
        + Send
        + 'static,
    ) -> Result<(Self, T), StoreError> {
        let to_its_end = async move {
            let connection = self.connection.as_deref_mut().ok_or_else(closed)?;
            let result = within(CALL_TIMEOUT, call(connection)).await?;
            Ok((self, result))
        };
        let task = tokio::spawn(to_its_end.in_current_span());
        // a task fails if it panics, or with the runtime
        task.await.unwrap_or_else(|_| Err(sqlx::Error::WorkerCrashed.into()))
    }

    /// The rows of a query.
    pub async fn rows<R: Record>(
        self,
        query: Query,
        of: Of,
        proof: Proof,
    ) -> Result<(Self, Vec<R>), StoreError> {
        let query = query.persistent(self.mode == PoolMode::Session);
        let proofs = Arc::clone(&self.proofs);
        self.run(move |connection| {
            Box::pin(async move {
                let rows = query.fetch_all(&mut *connection).await?;
                if proof == Proof::Asked {
                    proofs.prove(connection, "").await?;
                }
                let rows = R::read_all(rows)?;
                of.foreign(&rows).map_or(Ok(rows), |why| Err(proofs.refuse(&why)))
            })
        })
        .await
    }

    /// The log entries that a copy writes.
    pub async fn copied_entries(
        self,
        statement: String,
        of: Of,
    ) -> Result<(Self, Vec<LogEntry>), StoreError> {
        let proofs = Arc::clone(&self.proofs);
        self.run(move |connection| {
            Box::pin(async move {
                let mut stream = connection.copy_out_raw(&statement).await?;
                let mut data = Vec::new();
                while let Some(part) = stream.try_next().await? {
                    data.extend_from_slice(&part);
                }
                decoded(move || {
                    let rows = copy::rows(&data, LogRow::COLUMNS.len(), LogRow::read_copy)?;
                    if let Some(why) = of.foreign(&rows) {
                        return Err(proofs.refuse(&why));
                    }
                    LogRow::entries(rows)
                })
                .await
            })
        })
        .await
    }

    /// Run a query. Returns the number of affected rows.
    pub async fn execute(self, query: Query, proof: Proof) -> Result<(Self, u64), StoreError> {
        let query = query.persistent(self.mode == PoolMode::Session);
        let proofs = Arc::clone(&self.proofs);
        self.run(move |connection| {
            Box::pin(async move {
                let done = query.execute(&mut *connection).await?;
                if proof == Proof::Asked {
                    proofs.prove(connection, "").await?;
                }
                Ok(done.rows_affected())
            })
        })
        .await
    }

    /// Run a statement; the connection proves that it has answered all questions until now.
    pub async fn prove(self, statement: String) -> Result<Self, StoreError> {
        let proofs = Arc::clone(&self.proofs);
        let (lease, ()) = self
            .run(move |connection| {
                Box::pin(async move { proofs.prove(connection, &statement).await })
            })
            .await?;
        Ok(lease)
    }

    /// Return the connection to its pool.
    pub fn give_back(mut self) {
        drop(self.connection.take());
    }

    /// Roll back in the background, and give the connection back.
    pub fn roll_back(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { self.prove("ROLLBACK".into()).await.map(Self::give_back) });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

/// The error of a transaction that goes on after an error.
pub(super) fn closed() -> StoreError {
    sqlx::Error::Protocol("the connection of this transaction is closed".into()).into()
}
