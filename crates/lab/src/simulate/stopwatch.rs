//! The processor time of a run.

use std::time::Duration;

/// Measures the processor time of the current thread. Unlike wall time, it does not include the
/// time of other work on the machine. On a platform without a clock per thread, it measures wall
/// time.
pub(super) struct Stopwatch {
    #[cfg(unix)]
    started: Duration,
    #[cfg(not(unix))]
    started: std::time::Instant,
}

#[cfg(unix)]
impl Stopwatch {
    pub fn start() -> Self {
        Self { started: Self::now() }
    }

    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_sub(self.started)
    }

    fn now() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(unix))]
impl Stopwatch {
    pub fn start() -> Self {
        Self { started: std::time::Instant::now() }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
