//! Connections to PostgreSQL and the settings of their sessions.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection, Executor, PgConnection, PgPool};

use super::pool_mode::PoolMode;
use crate::store::StoreError;

/// Most connections of one process that append: as many as the engine's commits at the same time.
/// Those of a plain database take one connection, or a few after a failure.
pub(super) const APPENDING: u32 = 16;
/// Most connections of one process for everything else.
pub(super) const OTHER: u32 = 7;
/// How long a call waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for this long is tested before it is used.
const TEST_AFTER_IDLE: Duration = Duration::from_millis(100);

/// The settings of every session. `synchronous_commit` is raised to `on` and never lowered:
/// `remote_apply` waits for more. Just-in-time compilation would cost more than it saves on each
/// large append.
///
/// Every statement finds its rows by an index, in the index's order. The planner may use nothing
/// else, because it errs while a log is young: without statistics it reads and sorts the rest of a
/// log for each chunk.
const SETTINGS: &str = "
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

/// A connection outside the pools, without the settings of a session.
pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    match tokio::time::timeout(ACQUIRE_TIMEOUT, options.connect()).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(StoreError::Slow(ACQUIRE_TIMEOUT)),
    }
}

/// A pool that connects when a connection is needed.
pub(super) fn pool(max_connections: u32, options: &PgConnectOptions, mode: PoolMode) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A connection that was just in use is assumed to work: testing it costs a round trip, as
        // much as a short call.
        .test_before_acquire(false)
        .before_acquire(|connection, state| {
            Box::pin(async move {
                Ok(state.idle_for < TEST_AFTER_IDLE || connection.ping().await.is_ok())
            })
        })
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if mode == PoolMode::Session {
                    connection.execute(SETTINGS).await?;
                }
                Ok(())
            })
        })
        .connect_lazy_with(options.clone())
}

/// A pool of one connection, which listens.
pub(super) fn listening_pool(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}
