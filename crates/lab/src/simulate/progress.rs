//! Progress and cancellation of long work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of steps done, and a flag to stop the work. The threads that work share it with the
/// thread that displays it.
#[derive(Debug, Default)]
pub struct Progress {
    steps: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of steps done, over all runs.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Ends every run after its current step, and starts no other.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Progress::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Counts `steps` more steps as done.
    pub(crate) fn advance(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }
}
