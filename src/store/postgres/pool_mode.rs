//! How transactions and single statements reach the server.
//!
//! A connection of its own keeps a session: its settings, and the statements that it has prepared.
//! A pooler in transaction mode gives each transaction any of its server sessions. There, every
//! statement runs in a transaction, which sets its own settings, and is prepared without a name in
//! the transaction that runs it. This takes three more round trips for a single statement, and
//! works whether or not the pooler keeps track of prepared statements.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    Connection as _, Either, Error, Execute, Executor, PgConnection, PgPool, Postgres, SqlStr,
};

/// Begins a transaction with the settings of a session (`sessions::SETTINGS`). They end with the
/// transaction, and other clients of the pooler never see them.
const BEGIN_POOLED: &str = "
    begin isolation level read committed;
    select set_config('statement_timeout', '15s', true), set_config('lock_timeout', '5s', true),
        set_config('idle_in_transaction_session_timeout', '15s', true),
        set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        case when current_setting('synchronous_commit') not in ('on', 'remote_apply')
            then set_config('synchronous_commit', 'on', true) end;
";

/// Who keeps a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::store) enum PoolMode {
    /// The server, or a pooler, for as long as the connection is open.
    #[default]
    Session,
    /// A pooler, for one transaction.
    Transaction,
}

/// A transaction. Rolled back unless it is committed.
#[derive(Debug)]
pub(super) struct PgTransaction<'c> {
    transaction: sqlx::Transaction<'c, Postgres>,
    mode: PoolMode,
}

impl PgTransaction<'static> {
    /// Begin a transaction on a connection of the pool.
    pub async fn begin(pool: &PgPool, mode: PoolMode) -> Result<Self, Error> {
        let transaction = match mode {
            PoolMode::Session => pool.begin().await?,
            PoolMode::Transaction => pool.begin_with(BEGIN_POOLED).await?,
        };
        Ok(Self { transaction, mode })
    }
}

impl<'c> PgTransaction<'c> {
    /// Begin a transaction on this connection.
    pub async fn begin_on(connection: &'c mut PgConnection, mode: PoolMode) -> Result<Self, Error> {
        let transaction = match mode {
            PoolMode::Session => connection.begin().await?,
            PoolMode::Transaction => connection.begin_with(BEGIN_POOLED).await?,
        };
        Ok(Self { transaction, mode })
    }

    pub async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await
    }

    pub async fn rollback(self) -> Result<(), Error> {
        self.transaction.rollback().await
    }

    /// The connection, for copies.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}

impl<'c, 't: 'c> Executor<'c> for &'c mut PgTransaction<'t> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let mode = self.mode;
        (&mut *self.transaction).fetch_many(InMode { query, mode })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let mode = self.mode;
        (&mut *self.transaction).fetch_optional(InMode { query, mode })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        (&mut *self.transaction).prepare_with(sql, parameters)
    }
}

/// Runs each statement in a transaction of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleStatements<'p> {
    pub pool: &'p PgPool,
    pub mode: PoolMode,
}

impl<'p> Executor<'p> for SingleStatements<'p> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        if self.mode == PoolMode::Session {
            return self.pool.fetch_many(query);
        }
        let steps = async move {
            let mut transaction = PgTransaction::begin(self.pool, self.mode).await?;
            let steps: Vec<_> = transaction.fetch_many(query).try_collect().await?;
            transaction.commit().await?;
            Ok::<_, Error>(stream::iter(steps.into_iter().map(Ok)))
        };
        stream::once(steps).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        if self.mode == PoolMode::Session {
            return self.pool.fetch_optional(query);
        }
        Box::pin(async move {
            let mut transaction = PgTransaction::begin(self.pool, self.mode).await?;
            let row = transaction.fetch_optional(query).await?;
            transaction.commit().await?;
            Ok(row)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'p: 'e,
    {
        self.pool.prepare_with(sql, parameters)
    }
}

/// A query that is prepared under a name only if the session is kept.
struct InMode<E> {
    query: E,
    mode: PoolMode,
}

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for InMode<E> {
    fn sql(self) -> SqlStr {
        self.query.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    fn persistent(&self) -> bool {
        self.mode == PoolMode::Session && self.query.persistent()
    }
}
