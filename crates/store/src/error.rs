//! Errors of a store, and how errors of a database map to them.

use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

/// Why an operation of the store failed. A message includes the message of its cause, so the cause
/// is not a `source`: it would be printed twice.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, is read-only, full, shutting down or too slow. A write that
    /// failed with this may have been kept. Repeating it is safe, because everything that is
    /// appended carries a nonce.
    #[error("the database is unavailable: {}", said(.0))]
    Unavailable(sqlx::Error),
    /// The database did not respond in time; as with [`StoreError::Unavailable`], repeating the
    /// operation is safe.
    #[error("the database did not respond within {0:?}")]
    Slow(Duration),
    /// The files of an SQLite database are another server's, or not in their place. The message
    /// says what to do.
    #[error("{0}")]
    Files(String),
    /// A pooler between this program and the server gives its connections to several clients.
    #[error("{0}")]
    Pooled(&'static str),
    /// The schema is older or newer than this program's.
    #[error("the database schema does not match this program: {0}")]
    Schema(String),
    /// The database cannot be distributed over several nodes. The message says why, and what to do.
    #[error("the database cannot be distributed: {0}")]
    Distribution(String),
    /// The URL for listening leads to another database.
    #[error("{0}")]
    AnotherDatabase(&'static str),
    /// The database answered another question than the one that was asked. Nothing of the answer is
    /// used; repeating the operation is safe, as with [`StoreError::Unavailable`].
    #[error("the database answered another question: {0}")]
    Foreign(String),
    /// A row that this program cannot have written. The message names the row.
    #[error("the database has unreadable data: {0}")]
    Corrupt(String),
    /// The database refused the statement itself: a defect of this program.
    #[error("the database refused a statement: {}", said(.0))]
    Refused(sqlx::Error),
}

/// The SQLSTATE of a missing right.
const PERMISSION_DENIED: &str = "42501";

/// The text of an error, without the line of PostgreSQL's own source that the driver adds.
fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            let remedy = if code == PERMISSION_DENIED {
                "; the user in the URL must own the tables (after a restore: pg_restore \
                 --no-owner --role USER)"
            } else if database.try_downcast_ref::<PgDatabaseError>().is_some() {
                ""
            } else {
                match sqlite_code(&code) {
                    Some(READ_ONLY | CANNOT_OPEN) => {
                        "; the user that runs this program needs the right to write the file and \
                         its folder"
                    }
                    Some(IO_ERROR) => "; is its disk full?",
                    _ => "",
                }
            };
            format!("error returned from database: {}{remedy}", database.message())
        }
        other => other.to_string(),
    }
}

impl StoreError {
    /// Whether the database answered, with an error. It may then accept a part of what it refused.
    /// A server that ends its sessions (class 57P) does not answer: it may have kept everything.
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Unavailable(error) => error
                .as_database_error()
                .is_some_and(|error| !error.code().is_some_and(|code| code.starts_with("57P"))),
            Self::Refused(_) | Self::Corrupt(_) => true,
            Self::Slow(_)
            | Self::Foreign(_)
            | Self::Files(_)
            | Self::Pooled(_)
            | Self::Schema(_)
            | Self::Distribution(_)
            | Self::AnotherDatabase(_) => false,
        }
    }
}

/// Time limit of reads in the background, which no request's time limit ends.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// The result of `call`, or [`StoreError::Slow`] after 10 seconds.
pub async fn in_time<T>(
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    within(READ_WITHIN, call).await
}

/// The result of `call`, or [`StoreError::Slow`] after this time.
pub async fn within<T, E: From<StoreError>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let slow = |_| Err(StoreError::Slow(limit).into());
    tokio::time::timeout(limit, call).await.unwrap_or_else(slow)
}

/// The remedy for a schema that is older than the program.
pub(super) const RUN_MIGRATE: &str = "run `rankduel migrate`";

/// The effect of a pooler that was not declared, and the remedy.
pub(super) const POOLED: &str = "the database URL leads to a pooler that does not keep sessions \
     together (such as PgBouncer with pool_mode = transaction): add pool_mode=transaction to the \
     URL, or connect to the database itself";

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        match error {
            E::Migrate(error) => (*error).into(),
            E::Database(database) => {
                let code = database.code().unwrap_or_default().into_owned();
                let message = database.message().to_owned();
                let meaning = if database.try_downcast_ref::<PgDatabaseError>().is_some() {
                    of_sqlstate(&code)
                } else {
                    of_sqlite(&code, &message)
                };
                match meaning {
                    Meaning::Unavailable => StoreError::Unavailable(E::Database(database)),
                    Meaning::Pooled => StoreError::Pooled(POOLED),
                    Meaning::Schema => StoreError::Schema(format!("{message}: {RUN_MIGRATE}")),
                    Meaning::Corrupt => StoreError::Corrupt(message),
                    Meaning::Refused => StoreError::Refused(E::Database(database)),
                }
            }
            error @ (E::ColumnDecode { .. } | E::Decode(_)) => {
                StoreError::Corrupt(error.to_string())
            }
            error @ (E::RowNotFound
            | E::TypeNotFound { .. }
            | E::ColumnIndexOutOfBounds { .. }
            | E::ColumnNotFound(_)
            | E::Encode(_)
            | E::InvalidArgument(_)
            | E::InvalidSavePointStatement) => StoreError::Refused(error),
            // everything between here and the database: sockets, TLS, pools, worker threads, and
            // malformed responses of a broken connection
            error => StoreError::Unavailable(error),
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            MigrateError::VersionMissing(version) => newer(version),
            MigrateError::VersionMismatch(version) => altered(version),
            other => StoreError::Schema(other.to_string()),
        }
    }
}

/// The database has a migration that this program does not know.
pub(super) fn newer(version: i64) -> StoreError {
    StoreError::Schema(format!(
        "it has migration {version}, which is newer than this program: upgrade rankduel"
    ))
}

/// The database has another migration under this number.
pub(super) fn altered(version: i64) -> StoreError {
    StoreError::Schema(format!(
        "its migration {version} differs from this program's: was it made by another build of \
         rankduel?"
    ))
}

/// Meaning of an error code; each becomes the [`StoreError`] of its name.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Unavailable,
    Pooled,
    Schema,
    Corrupt,
    Refused,
}

/// Meaning of an SQLSTATE (PostgreSQL documentation, appendix A).
fn of_sqlstate(code: &str) -> Meaning {
    match code {
        // undefined table, column, schema or function
        "42P01" | "42703" | "3F000" | "42883" => Meaning::Schema,
        // duplicate prepared statement, invalid statement name: another client of a pooler
        // prepared it, or this one did in another session
        "42P05" | "26000" => Meaning::Pooled,
        // data corrupted, index corrupted
        "XX001" | "XX002" => Meaning::Corrupt,
        // read-only transaction, idle too long in a transaction, the database accepts no
        // connections, lock not available, permission denied
        "25006" | "25P03" | "55000" | "55P03" | PERMISSION_DENIED => Meaning::Unavailable,
        // classes: connection exception, invalid authorization, invalid catalog name, transaction
        // rollback, insufficient resources, operator intervention, system error
        _ if ["08", "28", "3D", "40", "53", "57", "58"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Meaning::Unavailable
        }
        _ => Meaning::Refused,
    }
}

/// SQLite's code for a file that cannot be written.
const READ_ONLY: u32 = 8;
/// SQLite's code for a call of the file system that failed, such as one that makes a file larger.
const IO_ERROR: u32 = 10;
/// SQLite's code for a file that cannot be opened.
const CANNOT_OPEN: u32 = 14;

/// The primary result code of SQLite, the lowest byte (<https://www.sqlite.org/rescode.html>).
fn sqlite_code(code: &str) -> Option<u32> {
    code.parse::<u32>().ok().map(|code| code & 0xff)
}

/// Meaning of a result code of SQLite.
fn of_sqlite(code: &str, message: &str) -> Meaning {
    let Some(code) = sqlite_code(code) else { return Meaning::Refused };
    match code {
        // PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, AUTH
        3 | 5 | 6 | 7 | READ_ONLY | 9 | IO_ERROR | 13 | CANNOT_OPEN | 15 | 23 => {
            Meaning::Unavailable
        }
        // CORRUPT, NOTADB
        11 | 26 => Meaning::Corrupt,
        // ERROR, the code of everything wrong with a statement
        1 if message.starts_with("no such table")
            || message.starts_with("no such column")
            || message.contains("has no column named") =>
        {
            Meaning::Schema
        }
        _ => Meaning::Refused,
    }
}

/// Whether the same transaction can succeed if it is run again: PostgreSQL aborted it to resolve a
/// deadlock or a serialisation conflict.
pub(super) fn is_retryable(error: &StoreError) -> bool {
    let StoreError::Unavailable(sqlx::Error::Database(database)) = error else { return false };
    matches!(database.code().as_deref(), Some("40001" | "40P01"))
        && database.try_downcast_ref::<PgDatabaseError>().is_some()
}
