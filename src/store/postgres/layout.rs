//! Where a database has its experiments: on one node, or each on one of several.
//!
//! Citus lists distributed tables in `pg_dist_partition`, which only databases with the extension
//! have. A table that is sharded by schema is whole on one node, as in a plain database.

use std::sync::atomic::{AtomicU8, Ordering};

/// Asked first: without the extension, there is no such table.
pub(super) const HAS_EXTENSION: &str = "select to_regclass('pg_dist_partition') is not null";

/// `h`: distributed by a hash.
pub(super) const IS_DISTRIBUTED: &str = "select exists (
         select 1 from pg_dist_partition
         where logicalrelid = to_regclass('log') and partmethod = 'h'
     )";

/// Where the experiments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// All on one node: a plain database, or one that is sharded by schema.
    Whole,
    /// Each on one node, by its id.
    ByExperiment,
}

/// The layout, once it is known.
#[derive(Debug, Default)]
pub(super) struct KnownLayout(AtomicU8);

impl KnownLayout {
    pub fn known(&self) -> Option<Layout> {
        match self.0.load(Ordering::Relaxed) {
            1 => Some(Layout::Whole),
            2 => Some(Layout::ByExperiment),
            _ => None,
        }
    }

    pub fn learn(&self, layout: Layout) {
        let number = match layout {
            Layout::Whole => 1,
            Layout::ByExperiment => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }

    /// Ask again at the next append.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
