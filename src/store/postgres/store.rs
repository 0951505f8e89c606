//! The pools of a store in PostgreSQL, and how its calls run.

use std::io;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::OnceCell;

use super::layout::{HAS_EXTENSION, IS_DISTRIBUTED, KnownLayout, Layout};
use super::notifier::Notifier;
use super::own_notices::OwnNotices;
use super::pool_mode::{PgTransaction, PoolMode, SingleStatements};
use super::repeat_guard::RepeatGuard;
use super::sessions::{self, APPENDING, OTHER, listening_pool};
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
    pub(super) mode: PoolMode,
    /// The options of connections that no pooler shares, for listening and migrations. `None`:
    /// there is only a pooler.
    pub(super) direct: Option<PgConnectOptions>,
    /// Whether `direct` comes from a URL of its own.
    pub(super) has_direct_url: bool,
    /// Whether `direct` was found to lead to the same database: `false` if it did not answer.
    pub(super) same_database: OnceCell<bool>,
    /// Set once [`PoolMode::Session`] was checked.
    pub(super) own_sessions: OnceCell<()>,
    pub(super) pool: PgPool,
    /// Appends have a pool of their own, so that one connection makes nearly all of them: the
    /// server keeps its caches warm.
    pub(super) appending: PgPool,
    pub(super) listening: Option<PgPool>,
    pub(super) own_notices: OwnNotices,
    pub(super) repeat_guard: RepeatGuard,
    pub(super) layout: KnownLayout,
    notifier: Notifier,
    /// Host, port and database, for messages.
    pub(super) place: String,
    /// The set of databases that this process knows.
    pub(super) epoch: AtomicI64,
}

impl PostgresStore {
    /// A store that connects when it is first called. `direct` leads to the same database without
    /// a pooler. Needs a tokio runtime.
    pub fn new(
        options: PgConnectOptions,
        mode: PoolMode,
        direct: Option<PgConnectOptions>,
    ) -> Self {
        let pool = sessions::pool(OTHER, &options, mode);
        let own_notices = OwnNotices::default();
        let has_direct_url = direct.is_some();
        let direct = direct.or_else(|| (mode == PoolMode::Session).then(|| options.clone()));
        Self {
            appending: sessions::pool(APPENDING, &options, mode),
            listening: direct.clone().map(listening_pool),
            notifier: Notifier::start(pool.clone(), mode, own_notices.clone()),
            repeat_guard: RepeatGuard::default(),
            layout: KnownLayout::default(),
            has_direct_url,
            same_database: OnceCell::new(),
            own_sessions: OnceCell::new(),
            place: place(&options),
            epoch: AtomicI64::new(0),
            options,
            mode,
            direct,
            pool,
            own_notices,
        }
    }

    /// Runs reads.
    pub(super) fn readers(&self) -> SingleStatements<'_> {
        SingleStatements { pool: &self.pool, mode: self.mode }
    }

    /// Runs writes other than appends.
    pub(super) fn writers(&self) -> SingleStatements<'_> {
        SingleStatements { pool: &self.pool, mode: self.mode }
    }

    /// Begin a transaction. Boxed, so that `&mut *transaction` is its executor, as it is for a
    /// transaction of the driver.
    pub(super) async fn begin(&self) -> Result<Box<PgTransaction<'static>>, StoreError> {
        Ok(Box::new(PgTransaction::begin(&self.pool, self.mode).await?))
    }

    /// The layout; the first call asks the database.
    pub(super) async fn layout(&self) -> Result<Layout, StoreError> {
        match self.layout.known() {
            Some(layout) => Ok(layout),
            None => self.ask_layout().await,
        }
    }

    /// Ask the database for its layout: it may have been distributed by another process.
    pub(super) async fn ask_layout(&self) -> Result<Layout, StoreError> {
        let extended = sqlx::query_scalar(HAS_EXTENSION).fetch_one(self.readers()).await?;
        let distributed =
            extended && sqlx::query_scalar(IS_DISTRIBUTED).fetch_one(self.readers()).await?;
        let layout = if distributed { Layout::ByExperiment } else { Layout::Whole };
        self.layout.learn(layout);
        Ok(layout)
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

/// Host, port and database of a URL.
fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("{host}/{}", options.get_database().unwrap_or(options.get_username()))
}
