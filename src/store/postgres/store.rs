//! The pools of a store in PostgreSQL, and how its calls run.

use std::io;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{PgPool, Postgres, Transaction};

use super::notifier::Notifier;
use super::repeat_guard::RepeatGuard;
use super::sessions::{APPENDING, OTHER, Sessions, listening_pool, session_pool};
use crate::store::error::is_retryable;
use crate::store::{ExperimentId, StoreError};

/// Time limit of a whole call. The server's own limits come first; this one is for a server that
/// no longer responds.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts at a transaction that the server aborts (deadlock, serialisation), the first included.
const ATTEMPTS: u32 = 4;

/// A store in PostgreSQL.
#[derive(Debug)]
pub(in crate::store) struct PostgresStore {
    pub(super) options: PgConnectOptions,
    pub(super) pool: PgPool,
    /// Appends have a pool of their own, so that one connection makes nearly all of them: the
    /// server keeps its caches warm.
    pub(super) appending: PgPool,
    pub(super) listening: PgPool,
    pub(super) sessions: Sessions,
    pub(super) repeat_guard: RepeatGuard,
    notifier: Notifier,
}

impl PostgresStore {
    /// A store that connects when it is first called. Needs a tokio runtime.
    pub fn new(options: PgConnectOptions) -> Self {
        let sessions = Sessions::default();
        let pool = session_pool(OTHER, &options, &sessions);
        Self {
            appending: session_pool(APPENDING, &options, &sessions),
            listening: listening_pool(options.clone()),
            notifier: Notifier::start(pool.clone()),
            repeat_guard: RepeatGuard::default(),
            options,
            pool,
            sessions,
        }
    }

    /// The pool for reads.
    pub(super) fn readers(&self) -> &PgPool {
        &self.pool
    }

    /// The pool for writes other than appends.
    pub(super) fn writers(&self) -> &PgPool {
        &self.pool
    }

    /// Begin a transaction that writes.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        Ok(self.pool.begin().await?)
    }

    /// Notify other processes that the log of an experiment has grown to `head`.
    pub(super) fn announce(&self, experiment: ExperimentId, head: u64) {
        self.notifier.announce(experiment, head);
    }

    /// Run a unit of work within [`CALL_TIMEOUT`], again if the server aborted it to resolve a
    /// deadlock.
    pub(super) async fn attempt<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        let attempts = async {
            for _ in 1..ATTEMPTS {
                match attempt().await {
                    Err(error) if is_retryable(&error) => {}
                    result => return result,
                }
            }
            attempt().await
        };
        tokio::time::timeout(CALL_TIMEOUT, attempts).await.unwrap_or_else(|_| {
            let message = format!("no response within {} s", CALL_TIMEOUT.as_secs());
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message)).into())
        })
    }
}
