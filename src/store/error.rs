//! What a database's complaint means to the caller: not there, not ours, broken, or our own defect.

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;

use super::StoreError;

/// What ops do about a schema that is older than the program.
pub(super) const RUN_MIGRATE: &str = "run `rankduel migrate`";

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
            // the way to the database: sockets, TLS, pools, worker threads, and what a broken
            // connection answers
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
        "its migration {version} is not the one this program has: was it made by another build of rankduel?"
    ))
}

/// What an error code stands for; each becomes the [`StoreError`] of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Unavailable,
    Schema,
    Corrupt,
    Refused,
}

/// By SQLSTATE (PostgreSQL documentation, appendix A).
fn of_sqlstate(code: &str) -> Meaning {
    match code {
        // undefined table, column or schema
        "42P01" | "42703" | "3F000" => Meaning::Schema,
        // data corrupted, index corrupted
        "XX001" | "XX002" => Meaning::Corrupt,
        // read-only transaction; idle too long in a transaction; lock not available; permission
        // denied
        "25006" | "25P03" | "55P03" | "42501" => Meaning::Unavailable,
        // connection; not allowed in; no such database; transaction rolled back; out of a resource;
        // stopped by an operator; system error
        _ if ["08", "28", "3D", "40", "53", "57", "58"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Meaning::Unavailable
        }
        _ => Meaning::Refused,
    }
}

/// By SQLite's result code, the primary one being the lowest byte
/// (<https://www.sqlite.org/rescode.html>).
fn of_sqlite(code: &str, message: &str) -> Meaning {
    let Ok(code) = code.parse::<u32>() else { return Meaning::Refused };
    match code & 0xff {
        // PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, AUTH
        3 | 5 | 6 | 7 | 8 | 9 | 10 | 13 | 14 | 15 | 23 => Meaning::Unavailable,
        // CORRUPT, NOTADB
        11 | 26 => Meaning::Corrupt,
        // ERROR, the code of everything that is wrong with a statement
        1 if message.starts_with("no such table")
            || message.starts_with("no such column")
            || message.contains("has no column named") =>
        {
            Meaning::Schema
        }
        _ => Meaning::Refused,
    }
}

/// Whether the same transaction, run again, can be expected to succeed: the database broke a
/// deadlock or a serialisation conflict by giving up this one.
pub(super) fn is_worth_another_try(error: &StoreError) -> bool {
    let StoreError::Unavailable(sqlx::Error::Database(database)) = error else { return false };
    matches!(database.code().as_deref(), Some("40001" | "40P01"))
        && database.try_downcast_ref::<PgDatabaseError>().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_mean_what_postgresql_says() {
        for (code, meaning) in [
            ("08006", Meaning::Unavailable), // connection failure
            ("25006", Meaning::Unavailable), // read-only transaction
            ("25P03", Meaning::Unavailable), // idle in transaction too long
            ("28P01", Meaning::Unavailable), // invalid password
            ("3D000", Meaning::Unavailable), // no such database
            ("40001", Meaning::Unavailable), // serialization failure
            ("40P01", Meaning::Unavailable), // deadlock
            ("42501", Meaning::Unavailable), // permission denied
            ("53100", Meaning::Unavailable), // disk full
            ("53300", Meaning::Unavailable), // too many connections
            ("55P03", Meaning::Unavailable), // lock timeout
            ("57014", Meaning::Unavailable), // statement timeout
            ("57P01", Meaning::Unavailable), // admin shutdown
            ("58030", Meaning::Unavailable), // I/O error
            ("42P01", Meaning::Schema),      // undefined table
            ("42703", Meaning::Schema),      // undefined column
            ("XX001", Meaning::Corrupt),     // data corrupted
            ("XX002", Meaning::Corrupt),     // index corrupted
            ("23505", Meaning::Refused),     // unique violation
            ("23503", Meaning::Refused),     // foreign key violation
            ("42601", Meaning::Refused),     // syntax error
            ("22021", Meaning::Refused),     // a character that the encoding has not
        ] {
            assert_eq!(of_sqlstate(code), meaning, "{code}");
        }
    }

    #[test]
    fn sqlite_codes_mean_what_sqlite_says() {
        for (code, message, meaning) in [
            ("5", "database is locked", Meaning::Unavailable),
            ("517", "database is locked", Meaning::Unavailable), // BUSY_SNAPSHOT
            ("6", "database table is locked", Meaning::Unavailable),
            ("8", "attempt to write a readonly database", Meaning::Unavailable),
            ("1032", "attempt to write a readonly database", Meaning::Unavailable), // READONLY_DBMOVED
            ("778", "disk I/O error", Meaning::Unavailable),                        // IOERR_WRITE
            ("13", "database or disk is full", Meaning::Unavailable),
            ("14", "unable to open database file", Meaning::Unavailable),
            ("1", "no such table: log", Meaning::Schema),
            ("1", "table log has no column named batch", Meaning::Schema),
            ("11", "database disk image is malformed", Meaning::Corrupt),
            ("267", "database disk image is malformed", Meaning::Corrupt), // CORRUPT_VTAB
            ("26", "file is not a database", Meaning::Corrupt),
            ("1", "near \"selct\": syntax error", Meaning::Refused),
            ("19", "constraint failed", Meaning::Refused),
            ("2067", "UNIQUE constraint failed: log.nonce", Meaning::Refused),
            ("no number", "", Meaning::Refused),
        ] {
            assert_eq!(of_sqlite(code, message), meaning, "{code} {message}");
        }
    }
}
