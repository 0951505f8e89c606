//! The pools of a store in PostgreSQL, and where its experiments are.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::OnceCell;

use super::lease::Pool;
use super::notifier::Notifier;
use super::sessions::{APPENDING, OTHER, PoolMode, listening_pool};
use crate::StoreError;

/// Whether the database has the table `pg_dist_partition`, in which Citus lists distributed tables.
/// Only databases with the extension have it, so this is asked first.
const HAS_EXTENSION: &str = "select to_regclass('pg_dist_partition') is not null";

/// Method `h`: by a hash. A table that is sharded by schema is whole on one node.
const IS_DISTRIBUTED: &str = "select exists (
         select 1 from pg_dist_partition
         where logicalrelid = to_regclass('log') and partmethod = 'h'
     )";

/// On which nodes the experiments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// All on one node: a plain database, or one that is sharded by schema.
    Whole = 1,
    /// Each experiment on one node, which follows from its id.
    ByExperiment = 2,
}

/// A store in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pub(super) options: PgConnectOptions,
    pub(super) mode: PoolMode,
    /// The options of connections that no pooler shares, for listening and migrations. `None`:
    /// there is only a pooler.
    pub(super) direct: Option<PgConnectOptions>,
    /// Whether `direct` comes from a URL of its own.
    pub(super) has_direct_url: bool,
    /// Whether `direct` leads to the database of `options`; `false` if it did not answer.
    pub(super) same_database: OnceCell<bool>,
    /// Set once [`PoolMode::Session`] was checked.
    pub(super) own_sessions: OnceCell<()>,
    pub(super) pool: Pool,
    /// Appends have a pool of their own, so that one connection makes nearly all of them: the
    /// server keeps its caches warm.
    pub(super) appending: Pool,
    pub(super) listening: Option<PgPool>,
    pub(super) notifier: Notifier,
    /// How many of the next appends check for repeats before they write.
    pub(super) checked_appends: AtomicU32,
    /// A [`Layout`], or 0 while it is not known.
    layout: AtomicU8,
}

impl PostgresStore {
    /// A store that connects when it is first called. `direct` leads to the same database without
    /// a pooler. Needs a tokio runtime.
    pub fn new(
        options: PgConnectOptions,
        mode: PoolMode,
        direct: Option<PgConnectOptions>,
    ) -> Self {
        let pool = Pool::new(OTHER, &options, mode);
        let has_direct_url = direct.is_some();
        let direct = direct.or_else(|| (mode == PoolMode::Session).then(|| options.clone()));
        Self {
            appending: Pool::new(APPENDING, &options, mode),
            listening: direct.clone().map(listening_pool),
            notifier: Notifier::start(pool.clone()),
            checked_appends: AtomicU32::new(0),
            layout: AtomicU8::new(0),
            has_direct_url,
            same_database: OnceCell::new(),
            own_sessions: OnceCell::new(),
            options,
            mode,
            direct,
            pool,
        }
    }

    /// The remembered layout.
    pub(super) fn known_layout(&self) -> Option<Layout> {
        [Layout::Whole, Layout::ByExperiment]
            .into_iter()
            .find(|layout| *layout as u8 == self.layout.load(Ordering::Relaxed))
    }

    pub(super) fn remember_layout(&self, layout: Layout) {
        self.layout.store(layout as u8, Ordering::Relaxed);
    }

    /// Forget the layout, so that the next [`PostgresStore::layout`] asks the database again.
    pub(super) fn forget_layout(&self) {
        self.layout.store(0, Ordering::Relaxed);
    }

    /// The layout. Asks the database unless the layout is known.
    pub(super) async fn layout(&self) -> Result<Layout, StoreError> {
        match self.known_layout() {
            Some(layout) => Ok(layout),
            None => self.ask_layout().await,
        }
    }

    /// Ask the database for its layout, and remember it. Another process may have distributed the
    /// database.
    pub(super) async fn ask_layout(&self) -> Result<Layout, StoreError> {
        let ask = async |question| self.pool.row(sqlx::query(question)).await;
        let (extended,): (bool,) = ask(HAS_EXTENSION).await?;
        let distributed = extended && ask(IS_DISTRIBUTED).await?.0;
        let layout = if distributed { Layout::ByExperiment } else { Layout::Whole };
        self.remember_layout(layout);
        Ok(layout)
    }
}
