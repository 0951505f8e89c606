//! [`Backend`] for PostgreSQL, with the reads of logs in its own SQL.

use sqlx::types::Uuid;

use super::lease::CALL_TIMEOUT;
use super::notifier::Listener;
use super::statements::{
    HEADS, KNOWN_ENTRIES, KNOWN_ENTRIES_OF_SEVERAL, LOCK_EXPERIMENT, LOCK_HEAD, LOCK_HEADS,
    READ_BULK, SAVE_ANSWER,
};
use super::store::{Layout, PostgresStore};
use super::transaction::PgTransaction;
use crate::error::is_retryable;
use crate::sql::backend::{Backend, Transaction as _};
use crate::sql::log_row::{LogRow, in_order_of};
use crate::sql::rows::ascending;
use crate::sql::statement::Statement;
use crate::sql::table_row::{Of, Record};
use crate::sql::value::{Value, bind_all};
use crate::{
    AppendUnit, Appended, ExperimentId, Head, LogEntry, NewEvent, Nonce, Notices, StoreError,
    within,
};

/// Attempts at a transaction that the server aborts (deadlock, serialisation), the first included.
const ATTEMPTS: u32 = 4;

impl Backend for PostgresStore {
    type Transaction = PgTransaction;

    const LOCK_EXPERIMENT: &'static Statement = &LOCK_EXPERIMENT;
    const SAVE_ANSWER: &'static Statement = &SAVE_ANSWER;

    /// Within [`CALL_TIMEOUT`], and again if the server aborted it to resolve a deadlock.
    async fn attempt<T: Send, F>(
        &self,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let attempts = async {
            for _ in 1..ATTEMPTS {
                match attempt().await {
                    Err(error) if is_retryable(&error) => {}
                    result => return result,
                }
            }
            attempt().await
        };
        within(CALL_TIMEOUT, attempts).await
    }

    async fn begin(&self) -> Result<Self::Transaction, StoreError> {
        PgTransaction::begin(&self.pool).await
    }

    async fn fetch<R: Record>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<R>, StoreError> {
        let query = || bind_all!(sqlx::query(statement.sql()), values);
        self.attempt(|| self.pool.rows(query(), statement.answers_about(values))).await
    }

    async fn run(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let query = || bind_all!(sqlx::query(statement.sql()), values);
        self.attempt(|| self.pool.execute(query())).await
    }

    async fn read_heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        let ids = ascending(experiments.iter().copied());
        self.pool.rows(sqlx::query(HEADS.sql()).bind(&ids), Of::Experiments(ids)).await
    }

    /// Many entries by a copy: each row of a query costs the driver more time than the server, and
    /// a row of a copy costs almost nothing.
    async fn read_bulk(
        &self,
        experiment: ExperimentId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let numbers = [experiment, after, i64::from(limit)];
        let statement = (1..).zip(numbers).fold(READ_BULK.sql().to_owned(), |sql, (n, number)| {
            sql.replace(&format!("${n}"), &number.to_string())
        });
        let mut transaction = self.begin().await?;
        let entries =
            transaction.copied_entries(statement, Of::Experiments(vec![experiment])).await?;
        transaction.commit().await?;
        Ok(entries)
    }

    async fn find_entries(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        // The lock makes this a commit that waits as an append does, so that what is found is as
        // durable as what is appended.
        let mut transaction = self.begin().await?;
        lock_heads(&mut transaction, &[experiment]).await?;
        let nonces_here = nonces.iter().map(|nonce| (experiment, *nonce));
        let known = known_entries(&mut transaction, nonces_here).await?;
        transaction.commit().await?;
        Ok(in_order_of(nonces, known))
    }

    /// As far as this process knows the layout of the database.
    fn unit_of(&self, experiment: ExperimentId) -> AppendUnit {
        match self.known_layout() {
            Some(Layout::ByExperiment) => AppendUnit::Experiment(experiment),
            Some(Layout::Whole) | None => AppendUnit::Whole,
        }
    }

    async fn append_events(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        self.append_in_units(events, recorded_at).await
    }

    async fn open_listener(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        let Some(listening) = &self.listening else {
            tracing::info!(
                "the pooler delivers no notifications: polling; --listen-database-url names the \
                 database itself"
            );
            return Ok(None);
        };
        if self.same_database.get() != Some(&true) {
            self.require_same_database().await?;
        }
        Ok(Some(Box::new(Listener::start(listening).await?)))
    }

    fn announce(&self, experiment: ExperimentId, head: u64) {
        self.notifier.announce(experiment, head);
    }
}

/// Lock the rows of these experiments, which ascend.
pub(super) async fn lock_heads(
    transaction: &mut PgTransaction,
    ids: &[ExperimentId],
) -> Result<Vec<Head>, StoreError> {
    let query = match ids {
        [id] => sqlx::query(LOCK_HEAD.sql()).bind(id),
        ids => sqlx::query(LOCK_HEADS.sql()).bind(ids),
    };
    transaction.rows(query, Of::Experiments(ids.to_vec())).await
}

/// The log entries under these nonces, in no particular order.
pub(super) async fn known_entries(
    transaction: &mut PgTransaction,
    nonces: impl Iterator<Item = (ExperimentId, Nonce)>,
) -> Result<Vec<(ExperimentId, LogEntry)>, StoreError> {
    let (experiments, nonces): (Vec<_>, Vec<_>) =
        nonces.map(|(experiment, nonce)| (experiment, Uuid::from_u128(nonce))).unzip();
    let Some(first) = experiments.first() else { return Ok(Vec::new()) };
    let of = Of::Experiments(ascending(experiments.iter().copied()));
    let query = if experiments.iter().all(|experiment| experiment == first) {
        sqlx::query(KNOWN_ENTRIES.sql()).bind(*first)
    } else {
        sqlx::query(KNOWN_ENTRIES_OF_SEVERAL.sql()).bind(experiments)
    };
    let rows: Vec<LogRow> = transaction.rows(query.bind(nonces), of).await?;
    rows.into_iter().map(|row| Ok((row.experiment_id, row.try_into()?))).collect()
}
