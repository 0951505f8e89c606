//! Connections to PostgreSQL and the settings of their sessions.
//!
//! A connection of its own keeps a session: its settings, and the statements that it has prepared.
//! A pooler in transaction mode gives each transaction any of its server sessions. There, every
//! statement runs in a transaction, which sets its own settings, and is prepared without a name in
//! the transaction that runs it. This takes three more round trips for a single statement, and
//! works whether or not the pooler keeps track of prepared statements.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection, Executor, PgConnection, PgPool, Row as _,
};

use crate::error::POOLED;
use crate::{StoreError, within};

/// Most connections of one process that append: as many as the engine's commits at the same time.
/// Those of a plain database take one connection, or a few after a failure.
pub(super) const APPENDING: u32 = 16;
/// Most connections of one process for everything else.
pub(super) const OTHER: u32 = 7;
/// How long a call waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for this long is tested before it is used.
const TEST_AFTER_IDLE: Duration = Duration::from_millis(100);

/// The settings of every session: name and value. Just-in-time compilation would cost more than it
/// saves on each large append.
///
/// Every statement finds its rows by an index, in the index's order. The planner may use nothing
/// else, because it errs while a log is young: without statistics it reads and sorts the rest of a
/// log for each chunk.
const SETTINGS: [(&str, &str); 10] = [
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "15s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "15s"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_sort", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// The keeper of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PoolMode {
    /// The server, or a pooler, for as long as the connection is open.
    #[default]
    Session,
    /// A pooler, for one transaction.
    Transaction,
}

/// A statement that applies [`SETTINGS`] to the session, or in transaction mode to the transaction.
/// `synchronous_commit` is raised to `on` and never lowered: `remote_apply` waits for more.
fn settings(mode: PoolMode) -> String {
    let local = mode == PoolMode::Transaction;
    let each = SETTINGS.map(|(name, value)| format!("set_config('{name}', '{value}', {local})"));
    format!(
        "select {}, case when current_setting('synchronous_commit') not in ('on', 'remote_apply')
             then set_config('synchronous_commit', 'on', {local}) end;",
        each.join(", ")
    )
}

/// Begins a transaction behind a pooler. Its settings end with it, and other clients of the pooler
/// never see them.
pub(super) fn begin_pooled() -> String {
    format!("begin isolation level read committed; {}", settings(PoolMode::Transaction))
}

/// A connection outside the pools, without the settings of a session.
pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    within(ACQUIRE_TIMEOUT, async { Ok(options.connect().await?) }).await
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
                    connection.execute(AssertSqlSafe(settings(PoolMode::Session))).await?;
                }
                Ok(())
            })
        })
        .connect_lazy_with(options.clone())
}

/// A pool of one connection, which listens. The connection is never used again: waiting for a
/// notification can be dropped at any time.
pub(super) fn listening_pool(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .after_release(|_, _| Box::pin(async { Ok(false) }))
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}

/// Rounds that find a pooler which picks its server sessions at random.
const ROUNDS: usize = 4;

/// Refuse connections that share the sessions of the server: what one prepares, another finds, and
/// its settings are those of another. This finds a pooler that the URL does not name.
pub(super) async fn require_own_sessions(options: &PgConnectOptions) -> Result<(), StoreError> {
    let (mut one, mut two) = (connect(options).await?, connect(options).await?);
    let own = (backend(&mut one).await?, backend(&mut two).await?);
    for _ in 0..ROUNDS {
        let now = (backend(&mut one).await?, backend(&mut two).await?);
        if now != own || now.0 == now.1 {
            return Err(StoreError::Pooled(POOLED));
        }
    }
    Ok(())
}

/// The number of the server process, asked without preparing a statement.
async fn backend(connection: &mut PgConnection) -> Result<i32, StoreError> {
    let row = connection.fetch_one("select pg_backend_pid()").await?;
    Ok(row.try_get(0)?)
}
