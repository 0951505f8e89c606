//! The claim of a server on its SQLite files: no other server takes them, and an answer is
//! acknowledged only while they are where the next start looks for them.
//!
//! A file that is deleted or replaced can still be written by the process that has it open. All
//! that it acknowledges is gone when it ends.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sqlx::SqliteConnection;
use tokio::sync::Mutex;

use crate::StoreError;

/// Ending of the file that is locked. Not the database itself: closing a second handle of it would
/// release the locks of SQLite. It stays when the server ends.
const LOCK: &str = ".lock";
/// Endings of the files that SQLite keeps beside the database while it is open.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// A claim; the next server can have it once this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    _lock: File,
    /// The database, its companions and the locked file, each with its device and inode.
    files: Vec<(PathBuf, (u64, u64))>,
    /// Keeps the companions in existence: SQLite deletes them with the last connection.
    anchor: Mutex<Option<SqliteConnection>>,
}

impl Claim {
    /// Claim the database in this file. `anchor` is a connection that has read from it.
    pub fn new(database: &Path, anchor: SqliteConnection) -> Result<Self, StoreError> {
        let refuse = |path: &Path, error: std::io::Error| {
            let path = path.display();
            StoreError::Files(format!("{path}: {error}; a server needs a local file system"))
        };
        let real = database.canonicalize().map_err(|error| refuse(database, error))?;
        let path = with_ending(&real, LOCK);
        let lock = lock(&path).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                StoreError::Files(format!(
                    "another server (process {}) serves {}: stop that one first. An SQLite file \
                     takes one server; several servers need PostgreSQL",
                    holder.trim(),
                    database.display()
                ))
            }
            _ => refuse(&path, error),
        })?;
        let companions = COMPANIONS.map(|ending| with_ending(&real, ending));
        let files = std::iter::once(database.to_owned()).chain(companions).chain([path]);
        let files = files.map(|file| match file.metadata() {
            Ok(metadata) => Ok((file, identity(&metadata))),
            Err(error) => Err(refuse(&file, error)),
        });
        Ok(Self {
            _lock: lock,
            files: files.collect::<Result<_, _>>()?,
            anchor: Some(anchor).into(),
        })
    }

    /// Check that the open files are still where the next start looks for them. This takes four
    /// calls of `stat`, a few µs.
    pub fn check(&self) -> Result<(), StoreError> {
        for (number, (file, opened)) in self.files.iter().enumerate() {
            let found = file.metadata();
            if found.as_ref().is_ok_and(|found| identity(found) == *opened) {
                continue;
            }
            let what = match found {
                Ok(_) => "was replaced".into(),
                Err(error) => format!("was moved or deleted ({error})"),
            };
            let remedy = match number {
                0 => {
                    "move the file back, or follow \"A database file that moved\" in operations.md"
                }
                _ => "restart the server, which moves what it has into the database when it stops",
            };
            return Err(StoreError::Files(format!(
                "{} {what} under the server, which acknowledges nothing until this is repaired: {remedy}",
                file.display()
            )));
        }
        Ok(())
    }

    /// Close the connection of the claim.
    pub async fn close(&self) {
        if let Some(anchor) = self.anchor.lock().await.take() {
            // the process ends in any case
            let _ = sqlx::Connection::close(anchor).await;
        }
    }
}

/// If the database is missing or empty although it was there before: the file that shows it.
pub(crate) fn evidence_of_loss(database: &Path) -> Option<PathBuf> {
    if database.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return None;
    }
    let beside = [COMPANIONS[0], LOCK].map(|ending| with_ending(database, ending));
    beside.into_iter().find(|file| file.exists())
}

/// Lock the file at `path`, and write the number of this process into it.
fn lock(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(false).open(path)?;
    file.try_lock()?;
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn with_ending(database: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(ending);
    path.into()
}
