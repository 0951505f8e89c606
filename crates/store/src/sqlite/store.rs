//! The connections of a store in an SQLite file.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqlitePool, Transaction};
use tokio::sync::Mutex;

use super::claim::Claim;
use crate::StoreError;

/// How long a statement waits while another process writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection; writes mostly wait for their turn here.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that read.
const READERS: u32 = 4;
/// Size to which the write-ahead log is truncated after a checkpoint.
const WAL_SIZE_LIMIT_BYTES: &str = "67108864";
/// Cache of the writing connection in KiB (SQLite takes KiB as a negative number). Nonces are
/// random, so an append touches database pages all over their index.
const WRITER_CACHE: &str = "-65536";

/// A store in an SQLite file.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    /// One connection, which writes.
    pub(super) writer: SqlitePool,
    pub(super) readers: SqlitePool,
    pub(super) path: PathBuf,
    pub(super) claim: OnceLock<Claim>,
    /// Held by a write that is no append while it waits for the writer. So an append, which has the
    /// feedback of every key, waits behind one of them at most, however many a key sends.
    waiting: Mutex<()>,
}

impl SqliteStore {
    /// Open the file, and create it if the options say so. This puts the file into write-ahead-log
    /// mode; the mode stays with the file.
    pub async fn open(options: SqliteConnectOptions, read_only: bool) -> Result<Self, StoreError> {
        let path = options.get_filename().to_owned();
        let options = options
            .read_only(read_only)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "1") // on macOS an fsync alone does not reach the disk
            .pragma("checkpoint_fullfsync", "1")
            .pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES);
        let pool = || {
            SqlitePoolOptions::new()
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .idle_timeout(None)
                .max_lifetime(None)
                // a connection is a thread of this process; a broken one is dropped on release
                .test_before_acquire(false)
        };
        let writer = pool()
            .max_connections(1)
            // After some errors, such as a full disk, SQLite rolls back by itself while the driver
            // still believes that it is in a transaction. Close such a connection; the next call
            // opens another.
            .after_release(|connection, _| {
                Box::pin(async move {
                    connection.ping().await?;
                    Ok(!connection.is_in_transaction())
                })
            })
            .connect_lazy_with(options.clone().pragma("cache_size", WRITER_CACHE));
        // only the writer may create the file: a reader would create an empty one and read from it
        let readers = pool()
            .max_connections(READERS)
            .connect_lazy_with(options.create_if_missing(false).pragma("query_only", "1"));
        if !read_only {
            enter_wal_mode(&writer).await?;
            // A process that was killed between writing and syncing leaves a commit that can be
            // read and is not durable yet. A checkpoint syncs it before anyone reads it.
            sqlx::query("pragma wal_checkpoint(passive)").execute(&writer).await?;
        }
        Ok(Self { writer, readers, path, claim: OnceLock::new(), waiting: Mutex::default() })
    }

    /// Check that a claimed file is still where the next start looks for it.
    pub(super) fn check_files(&self) -> Result<(), StoreError> {
        self.claim.get().map_or(Ok(()), Claim::check)
    }

    /// Begin a transaction that appends to logs.
    pub(super) async fn begin_append(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.check_files()?;
        Ok(self.writer.begin_with("begin immediate").await?)
    }

    /// Begin any other transaction that writes.
    pub(super) async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        let _turn = self.waiting.lock().await;
        self.begin_append().await
    }
}

/// Changing the mode needs exclusive access to the file, and the busy timeout does not apply to
/// it. So several processes that open a new file at once retry here.
async fn enter_wal_mode(writer: &SqlitePool) -> Result<(), StoreError> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut pauses = BUSY_TIMEOUT.as_millis() / PAUSE.as_millis();
    loop {
        match sqlx::query_scalar::<_, String>("pragma journal_mode = wal").fetch_one(writer).await {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let reason = format!(
                    "SQLite cannot keep a write-ahead log here (its journal mode stays {mode:?})"
                );
                return Err(StoreError::Unavailable(sqlx::Error::Configuration(reason.into())));
            }
            Err(error) if pauses == 0 || !is_busy(&error) => return Err(error.into()),
            Err(_) => {
                pauses -= 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Whether the error is SQLITE_BUSY, in any of its forms.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

/// These tests need the connection itself, so they cannot be in the contract suite.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{ControlEvent, Event};
    use crate::{
        Appended, Created, Database as _, ExperimentId, ExperimentLog as _, NewEvent,
        NewExperiment, Nonce,
    };

    async fn store(folder: &tempfile::TempDir) -> (SqliteStore, ExperimentId) {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("test.db"))
            .create_if_missing(true);
        let store = SqliteStore::open(options, false).await.unwrap();
        store.migrate().await.unwrap();
        let new = NewExperiment {
            id: 1,
            name: "one".into(),
            spec: "{}".into(),
            seed: 0,
            created_at: 0,
            audit: None,
        };
        let Created::New(record) = store.create_experiment(&new).await.unwrap() else {
            panic!("it is new")
        };
        (store, record.id)
    }

    /// An event that takes several database pages.
    fn large_event(nonce: Nonce) -> NewEvent {
        let counts = vec![(0, 1); 1000];
        NewEvent::new(nonce, Event::Control(ControlEvent::SelfDuels { counts, alone: Vec::new() }))
    }

    #[tokio::test]
    async fn a_transaction_that_sqlite_rolled_back_by_itself_harms_no_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = store(&folder).await;
        for nonce in 1..=3 {
            // as when SQLite runs out of memory or cannot write: the driver does not notice
            let mut transaction = store.begin_write().await.unwrap();
            sqlx::query("rollback").execute(&mut *transaction).await.unwrap();
            drop(transaction);
            let results = store.append(&[(id, large_event(nonce))], 0).await.unwrap();
            assert_eq!(results, [Appended::Recorded(nonce as u64 + 1)]);
        }
    }
}
