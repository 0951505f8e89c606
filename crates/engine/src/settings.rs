//! Settings of the engine.

use std::time::Duration;

/// Limits and intervals of a process that serves experiments.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Events that may wait for a commit. Beyond that, feedback is refused as overloaded.
    pub queue_events_max: usize,
    /// Time limit of a commit. After it, the caller does not know whether the commit succeeded and
    /// can repeat the request to find out. Keep it below the time limit of requests, so that the
    /// caller gets this answer.
    pub commit_within: Duration,
    /// Interval at which to look for entries that other processes appended. Notifications of the
    /// database are faster, but can be lost.
    pub poll_every: Duration,
    /// Whether to listen for notifications of the database.
    pub listen: bool,
    /// Interval of the maintenance rounds.
    pub maintain_every: Duration,
    /// An experiment without a request for this long is evicted from memory.
    pub idle_after: Duration,
    /// Estimated bytes that all experiments in memory may take. Beyond that, the least recently
    /// used ones are evicted.
    pub memory_bytes: u64,
    /// Estimated bytes that the clicks of unsettled duels of one experiment may take. Beyond that,
    /// feedback that does not settle its duel is refused as overloaded.
    pub open_pages_bytes_max: usize,
    /// Bytes that answers may take while they are kept for all who ask, or wait for clients that
    /// read slowly. Beyond that, further large answers are refused as overloaded.
    pub answer_bytes: usize,
    /// A report that takes longer than this is answered with its last result, if there is one.
    pub reports_within: Duration,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            queue_events_max: 100_000,
            commit_within: Duration::from_secs(8),
            poll_every: Duration::from_millis(500),
            listen: true,
            maintain_every: Duration::from_secs(2),
            idle_after: Duration::from_secs(3600),
            memory_bytes: 1 << 30,
            open_pages_bytes_max: 64 << 20,
            answer_bytes: 256 << 20,
            reports_within: Duration::from_secs(5),
        }
    }
}
