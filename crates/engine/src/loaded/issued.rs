//! Duels and traffic of one process, which the log does not have.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::condition::Condition;
use crate::open_duels::OpenDuels;
use crate::traffic::Traffic;

use super::LoadedExperiment;

/// The duels that this process has issued of an experiment, and its traffic: nothing that the log
/// has. A change of the spec loads the experiment again, and the new one goes on with these.
#[derive(Debug)]
pub(crate) struct Issued {
    pub open_duels: Mutex<OpenDuels>,
    pub traffic: Traffic,
    /// Unix milliseconds since which this process knows its duels.
    pub since_ms: i64,
    /// Whether no process has issued a duel of it before this one.
    pub is_first: bool,
    /// Position of the newest entry whose answer was counted here.
    counted_to: AtomicU64,
}

impl Issued {
    /// Nothing yet, beside a log that ends at `head`.
    pub fn new(open_duels: OpenDuels, traffic: Traffic, is_first: bool, head: u64) -> Self {
        let since_ms = traffic.since_ms();
        let (open_duels, counted_to) = (Mutex::new(open_duels), AtomicU64::new(head));
        Self { open_duels, traffic, since_ms, is_first, counted_to }
    }

    /// Whether the answer of the entry at this position is to be counted: once, however often the
    /// entry is folded.
    pub fn counts(&self, position: u64) -> bool {
        self.counted_to.fetch_max(position, Ordering::Relaxed) < position
    }
}

impl LoadedExperiment {
    /// Whether another one that is loaded after this one goes on with what this process has issued.
    /// If the log has regressed, this may be duels of another experiment.
    pub(crate) fn is_followed(&self) -> bool {
        self.condition() != Condition::LogRegressed
    }
}
