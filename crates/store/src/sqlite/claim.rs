//! The claim of a server on its SQLite files: no other server takes them, and an answer is
//! acknowledged only while they are where the next start looks for them.
//!
//! A file that is deleted or replaced can still be written by the process that has it open. All
//! that it acknowledges is gone when it ends. So is what it writes behind the end of a file that
//! was truncated. SQLite finds the companions of a database by its name, so two names of one file
//! have two logs.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sqlx::SqliteConnection;
use tokio::sync::Mutex;

use super::contents::{COMPANIONS, Contents, Truncated};
use crate::StoreError;

/// Suffix of the lock file beside the database (`<name>.lock`). The server locks this file too, to
/// claim the name of the database. The lock file is not deleted when the server ends.
const LOCK: &str = ".lock";

/// A claim on the files. Another server can make one once this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    _lock: File,
    /// The open database, which is locked too on Linux, and its companions.
    contents: Contents,
    /// The first file that was found truncated.
    truncated: OnceLock<Truncated>,
    /// The database, its companions and the lock file, each with its device and inode.
    files: Vec<(PathBuf, (u64, u64))>,
    /// A connection that stays open, because SQLite deletes the companions with the last one.
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
                    "another server (process {}) serves {}: {ONE_SERVER}",
                    holder.trim(),
                    database.display()
                ))
            }
            _ => refuse(&path, error),
        })?;
        let companions = COMPANIONS.map(|ending| with_ending(&real, ending));
        let contents = Contents::open(&real, &companions).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => StoreError::Files(format!(
                "another server serves {} by another name: {ONE_SERVER}",
                database.display()
            )),
            _ => refuse(database, error),
        })?;
        let files = std::iter::once(database.to_owned()).chain(companions).chain([path]);
        let files = files.map(|file| match file.metadata() {
            Ok(metadata) => Ok((file, identity(&metadata))),
            Err(error) => Err(refuse(&file, error)),
        });
        let claim = Self {
            _lock: lock,
            contents,
            truncated: OnceLock::new(),
            files: files.collect::<Result<_, _>>()?,
            anchor: Some(anchor).into(),
        };
        claim.check()?;
        Ok(claim)
    }

    /// Check that the open files are still where the next start looks for them, by one name each,
    /// and that they have what was committed. This takes some ten system calls.
    pub fn check(&self) -> Result<(), StoreError> {
        for (number, (file, opened)) in self.files.iter().enumerate() {
            let (what, remedy) = match file.metadata() {
                Ok(found) if identity(&found) == *opened => match other_names(&found) {
                    Some(names) => (names, DELETE_NAMES),
                    None => continue,
                },
                found => (
                    found.err().map_or("was replaced".into(), |error| {
                        format!("was moved or deleted ({error})")
                    }),
                    if number == 0 { MOVE_BACK } else { RESTART },
                ),
            };
            return Err(stopped(file, &what, remedy));
        }
        match self.truncated() {
            None => Ok(()),
            Some(Truncated::Database) => Err(stopped(&self.files[0].0, TRUNCATED, RESTORE)),
            Some(Truncated::Log) => Err(stopped(&self.files[1].0, TRUNCATED, RESTORE)),
            Some(Truncated::Index) => {
                Err(stopped(&self.files[2].0, TRUNCATED, "restart the server"))
            }
        }
    }

    /// The first file that was found truncated. It stays so: later commits make it long again, and
    /// leave a hole.
    fn truncated(&self) -> Option<Truncated> {
        self.truncated.get().copied().or_else(|| {
            let truncated = self.contents.check().err()?;
            Some(*self.truncated.get_or_init(|| truncated))
        })
    }

    /// Close the connection of the claim.
    pub async fn close(&self) {
        let Some(anchor) = self.anchor.lock().await.take() else { return };
        // The process ends in any case. The last connection to be closed moves the log into the
        // database; with a hole in either, that would destroy what is left.
        match self.truncated() {
            None => drop(sqlx::Connection::close(anchor).await),
            Some(_) => std::mem::forget(anchor),
        }
    }
}

const ONE_SERVER: &str = "stop that one first. An SQLite file takes one server; several servers \
                          need PostgreSQL";
const TRUNCATED: &str = "was truncated";
const MOVE_BACK: &str =
    "move the file back, or follow \"A database file that moved\" in operations.md";
const DELETE_NAMES: &str = "delete its other names";
const RESTART: &str = "restart the server, which moves what it has into the database when it stops";
const RESTORE: &str =
    "acknowledged answers are lost; follow \"A database file that moved\" in operations.md";

fn stopped(file: &Path, what: &str, remedy: &str) -> StoreError {
    StoreError::Files(format!(
        "{} {what} under the server, which acknowledges nothing until this is repaired: {remedy}",
        file.display()
    ))
}

/// How many names a file has, if it has several.
fn other_names(file: &Metadata) -> Option<String> {
    (file.is_file() && file.nlink() > 1).then(|| format!("has {} names (hard links)", file.nlink()))
}

/// Why a database must not be opened by this name, if so.
pub(crate) fn evidence_of_other_names(database: &Path) -> Option<StoreError> {
    let names = other_names(&database.metadata().ok()?)?;
    let why = format!("it {names}, each with a log of its own: {DELETE_NAMES}, or take a copy");
    Some(StoreError::Files(why))
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
