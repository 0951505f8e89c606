//! When the next snapshot of an experiment is due.

use std::sync::atomic::{AtomicU64, Ordering};

/// Least number of entries folded between two snapshots of an experiment.
const LEAST_ENTRIES: u64 = 10_000;
/// Bytes of a log entry in a database, with its indexes.
const ENTRY_BYTES: u64 = 190;

/// The newest saved snapshot, and when the next one is due.
///
/// Snapshots are spaced by entries and by bytes: one is due once the log has grown by as many bytes
/// as the last snapshot has. So all snapshots of an experiment together write no more bytes than
/// its log, also with a thousand rankers. To open it, a server folds 10,000 entries, or about as
/// many bytes of entries as the snapshot has.
#[derive(Debug)]
pub(super) struct SnapshotSchedule {
    position: AtomicU64,
    bytes: AtomicU64,
}

impl SnapshotSchedule {
    /// The newest snapshot is at `position` and has `bytes` bytes; 0 and 0 without a snapshot.
    pub fn new(position: u64, bytes: usize) -> Self {
        Self { position: AtomicU64::new(position), bytes: AtomicU64::new(bytes as u64) }
    }

    /// Whether a snapshot is due at `position`.
    pub fn is_due(&self, position: u64) -> bool {
        let least = (self.bytes.load(Ordering::Relaxed) / ENTRY_BYTES).max(LEAST_ENTRIES);
        position >= self.position.load(Ordering::Relaxed).saturating_add(least)
    }

    /// Whether entries were folded since the newest snapshot.
    pub fn is_behind(&self, position: u64) -> bool {
        position > self.position.load(Ordering::Relaxed)
    }

    /// The store has a snapshot of `bytes` bytes at `position`.
    pub fn saved(&self, position: u64, bytes: usize) {
        if self.position.fetch_max(position, Ordering::Relaxed) <= position {
            self.bytes.store(bytes as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SnapshotSchedule;

    #[test]
    fn small_snapshots_are_spaced_by_entries_and_large_ones_by_bytes() {
        let schedule = SnapshotSchedule::new(0, 0);
        assert!(!schedule.is_due(9_999));
        assert!(schedule.is_due(10_000));
        schedule.saved(10_000, 500);
        assert!(!schedule.is_due(19_999));
        assert!(schedule.is_due(20_000));
        schedule.saved(20_000, 19_000_000);
        assert!(!schedule.is_due(119_999));
        assert!(schedule.is_due(120_000));
    }

    #[test]
    fn one_entry_is_enough_for_an_experiment_that_leaves_memory() {
        let schedule = SnapshotSchedule::new(7, 19_000_000);
        assert!(!schedule.is_behind(7));
        assert!(schedule.is_behind(8));
    }
}
