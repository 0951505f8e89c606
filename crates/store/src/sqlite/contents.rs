//! Whether the open files of a database still have what was committed.
//!
//! Somebody may truncate them in place, and SQLite does not notice: it goes on writing where it
//! was, and what it writes behind the hole is lost at the next start. So the last commit, which the
//! index of the write-ahead log names, must be in the log. The formats are on
//! <https://sqlite.org/walformat.html>.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Endings of the files that SQLite keeps beside the database while it is open: the write-ahead
/// log and its index.
pub(super) const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Bytes of the header of the index. There are two copies; a reader that finds them equal has read
/// all of one commit.
const INDEX_HEADER: usize = 48;
/// Bytes of the header of the log, and of each frame (a database page) in it.
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: u64 = 24;

/// The open files. They stay open as long as the connections: closing a second handle of a file
/// releases the locks of SQLite on it.
#[derive(Debug)]
pub(super) struct Contents {
    database: File,
    log: File,
    index: File,
    /// The findings of the last check.
    found: Mutex<Found>,
}

/// The last commit, as the index has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Commit {
    /// Counts the commits.
    number: u32,
    page_bytes: u64,
    /// Frames of the log. With 0, the database has everything.
    frames: u64,
    /// Pages of the database; 0 before the first commit since the index was made.
    pages: u64,
    /// Those of the header of the log and of each frame. A log that starts anew has others.
    salts: [u8; 8],
}

#[derive(Debug, Clone, Copy, Default)]
struct Found {
    commit: Commit,
    database_bytes: u64,
}

/// A file that was truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truncated {
    Database,
    Log,
    Index,
}

impl Contents {
    /// Open the database and its companions, and lock the database.
    pub fn open(database: &PathBuf, [log, index]: &[PathBuf; 2]) -> io::Result<Self> {
        let database = File::open(database)?;
        // on other systems, this lock would exclude those of SQLite
        if cfg!(target_os = "linux") {
            database.try_lock()?;
        }
        let (log, index) = (File::open(log)?, File::open(index)?);
        Ok(Self { database, log, index, found: Mutex::default() })
    }

    /// Check that what was committed is still there, as far as the last check does not tell.
    pub fn check(&self) -> Result<(), Truncated> {
        let mut before = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // whoever writes the index now checks it afterwards
            let Some(commit) = self.last_commit()? else { return Ok(()) };
            let database_bytes = self.database.metadata().map_or(0, |database| database.len());
            let found = Found { commit, database_bytes };
            let truncated = match () {
                () if !self.log_has(&before.commit, &commit) => Truncated::Log,
                () if found.is_shorter_than(&before) => Truncated::Database,
                () => {
                    *before = found;
                    return Ok(());
                }
            };
            // Another process may have moved the log into the database in between.
            if self.last_commit()? == Some(commit) {
                return Err(truncated);
            }
        }
    }

    /// The last commit; `None` while it is written.
    fn last_commit(&self) -> Result<Option<Commit>, Truncated> {
        let mut copies = [0; 2 * INDEX_HEADER];
        let read = self.index.read_exact_at(&mut copies, 0);
        read.map_err(|_| Truncated::Index)?;
        let (first, second) = copies.split_at(INDEX_HEADER);
        Ok((first == second).then(|| Commit::decode(first)).flatten())
    }

    /// Whether the log has the last commit, and the one that was the last before it. If the log was
    /// truncated to less, the next commits make it long again, and leave a hole.
    fn log_has(&self, before: &Commit, commit: &Commit) -> bool {
        if commit.frames == 0 {
            return true;
        }
        let has_salts = |at: u64| {
            let mut salts = [0; 8];
            self.log.read_exact_at(&mut salts, at).is_ok() && salts == commit.salts
        };
        let is_long = |bytes| self.log.metadata().is_ok_and(|log| log.len() >= bytes);
        has_salts(16)
            && has_salts(commit.last_frame() + 8)
            && is_long(commit.last_frame() + FRAME_HEADER + commit.page_bytes)
            && (before.salts != commit.salts
                || before.frames == 0
                || has_salts(before.last_frame() + 8))
    }
}

impl Commit {
    /// From the header of the index, whose numbers are in the order of the processor. `None` if it
    /// has none yet.
    fn decode(header: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = header.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let (&is_initialised, page) = (header.get(12)?, header.get(14..16)?);
        let page_bytes = match u16::from_ne_bytes(page.try_into().ok()?) {
            1 => 65_536,
            bytes => u64::from(bytes),
        };
        (is_initialised != 0).then_some(Self {
            number: number(8)?,
            page_bytes,
            frames: number(16)?.into(),
            pages: number(20)?.into(),
            salts: header.get(32..40)?.try_into().ok()?,
        })
    }

    /// Where the last frame starts in the log.
    fn last_frame(&self) -> u64 {
        LOG_HEADER + (self.frames - 1) * (FRAME_HEADER + self.page_bytes)
    }
}

impl Found {
    /// Whether the database has become shorter than a checkpoint makes it: it has the pages of a
    /// commit then. After several commits, these are not known.
    fn is_shorter_than(&self, before: &Self) -> bool {
        let commits = [&before.commit, &self.commit];
        let pages = commits.iter().filter(|commit| commit.pages > 0);
        let least = pages.map(|commit| commit.pages * commit.page_bytes).min();
        let follows = self.commit.number.wrapping_sub(before.commit.number) <= 1;
        follows && self.database_bytes < before.database_bytes.min(least.unwrap_or(u64::MAX))
    }
}
