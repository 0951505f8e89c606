//! The interface of a database to the SQL that both share.

use super::log_row::LogRow;
use super::statement::Statement;
use super::table_row::Record;
use super::value::Value;
use crate::{
    AppendUnit, Appended, ExperimentId, Head, LogEntry, NewEvent, Nonce, Notices, StoreError,
};

/// The result of a call, as a future that any thread can run.
macro_rules! call {
    ($Value:ty) => { impl Future<Output = Result<$Value, StoreError>> + Send };
}

/// A database. With it, a store implements [`ExperimentLog`](crate::ExperimentLog),
/// [`KeyStore`](crate::KeyStore) and [`AuditLog`](crate::AuditLog).
pub(crate) trait Backend: Send + Sync {
    type Transaction: Transaction;

    /// Reads and locks the row of an experiment, within a transaction.
    const LOCK_EXPERIMENT: &'static Statement;

    /// Stores an answer (`$3`, of position `$2`, in state `$5` and group `$6`, due at `$7`) in place
    /// of `$4`, which is empty without one.
    const SAVE_ANSWER: &'static Statement;

    /// Run a unit of work, and repeat it if the database aborted it.
    fn attempt<T: Send, F>(&self, attempt: impl Fn() -> F + Send + Sync) -> call!(T)
    where
        F: Future<Output = Result<T, StoreError>> + Send;

    /// Begin a transaction that writes.
    fn begin(&self) -> call!(Self::Transaction);

    /// Run a statement that reads.
    fn fetch<R: Record>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> call!(Vec<R>);

    /// Run a statement that writes. Returns the number of affected rows.
    fn run(&self, statement: &'static Statement, values: &[Value<'_>]) -> call!(u64);

    /// See [`ExperimentLog::heads`](crate::ExperimentLog::heads).
    fn read_heads(&self, experiments: &[ExperimentId]) -> call!(Vec<Head>);

    /// Entries of a log after position `after`.
    fn read_bulk(&self, experiment: ExperimentId, after: i64, limit: u32) -> call!(Vec<LogEntry>);

    /// See [`ExperimentLog::find`](crate::ExperimentLog::find).
    fn find_entries(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> call!(Vec<Option<LogEntry>>);

    /// See [`ExperimentLog::append_unit`](crate::ExperimentLog::append_unit).
    fn unit_of(&self, experiment: ExperimentId) -> AppendUnit;

    /// See [`ExperimentLog::append`](crate::ExperimentLog::append).
    fn append_events(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> call!(Vec<Appended>);

    /// See [`ExperimentLog::listen`](crate::ExperimentLog::listen).
    fn open_listener(&self) -> call!(Option<Box<dyn Notices>>);

    /// Notify other processes that the log of an experiment has grown to `head`.
    fn announce(&self, experiment: ExperimentId, head: u64);
}

/// A transaction. Rolled back unless it is committed.
pub(crate) trait Transaction: Send {
    fn fetch<R: Record>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> call!(Vec<R>);

    fn run(&mut self, statement: &'static Statement, values: &[Value<'_>]) -> call!(u64);

    /// Write log entries; the head of their experiment stays as it is.
    fn insert_rows(&mut self, rows: &[LogRow]) -> call!(());

    /// Make other writers of signing keys wait.
    fn lock_signing_keys(&mut self) -> call!(());

    fn commit(self) -> call!(());
}
