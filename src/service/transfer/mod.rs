//! An experiment as a file. [`export`] and [`import`] move it whole, and [`write_pages`] makes a
//! table of its answered pages.
//!
//! An export has JSON lines, the same from either database, for archiving and for moving it to
//! another database.
//!
//! The first line describes the experiment. If the log was pruned, the next line is the snapshot
//! that replaces the pruned entries. Then there is one line for each log entry, in order. The last
//! line has the number of entries and the SHA-256 of all lines before it, which shows whether the
//! file was truncated or changed.

mod export;
mod format;
mod import;
mod log;
mod pages;
mod reader;
pub(crate) mod table;

pub use export::export;
pub(crate) use format::CHUNK;
pub use import::{Import, import};
pub(crate) use log::{FoldedLog, entry_beyond_head};
pub use pages::write_pages;
pub use table::TableFormat;
