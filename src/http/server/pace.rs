//! The pace of responses: those that do not have to be fast wait for their turn.
//!
//! A report that is known is served from memory, so a few callers that read without a pause could
//! keep every processor busy, and duels would wait for one. The turns of a second take a small
//! share of the processors. Requests without a key have turns of their own, so they slow nobody
//! else.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Turns per second for each processor. A read takes some 20 µs, so all turns take a fiftieth of
/// the processors.
const PER_SECOND_AND_PROCESSOR: u32 = 1000;
/// Turns that were not taken are kept for this long. Timers are about as late.
const KEPT: Duration = Duration::from_millis(2);

/// Gives turns to responses.
#[derive(Debug)]
pub(super) struct Pace {
    turns: Mutex<Turns>,
}

impl Pace {
    /// A pace for the processors of this machine.
    pub fn of_this_machine() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let processors = u32::try_from(processors).unwrap_or(u32::MAX);
        let every = Duration::from_secs(1) / PER_SECOND_AND_PROCESSOR.saturating_mul(processors);
        Self { turns: Mutex::new(Turns { next: Instant::now(), every }) }
    }

    /// Wait for a turn. Turns are given in the order of the calls; a caller that goes takes none.
    pub async fn turn(&self) {
        let mut turns = self.turns.lock().await;
        if let Some(at) = turns.wait_until(Instant::now()) {
            tokio::time::sleep_until(at.into()).await;
        }
        turns.take(Instant::now());
    }
}

/// Turns at equal intervals.
#[derive(Debug)]
struct Turns {
    next: Instant,
    every: Duration,
}

impl Turns {
    /// The time of the next turn, if it is not yet due.
    fn wait_until(&self, now: Instant) -> Option<Instant> {
        (self.next > now).then_some(self.next)
    }

    fn take(&mut self, now: Instant) {
        let oldest = now.checked_sub(KEPT).unwrap_or(now);
        self.next = self.next.max(oldest) + self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_each_other_at_the_interval_and_some_are_kept() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut turns = Turns { next: start, every: Duration::from_millis(1) };
        assert_eq!(turns.wait_until(start), None);
        turns.take(start);
        assert_eq!(turns.wait_until(start), Some(after(1)));
        // after a long silence: the turns of 2 ms at once, and then one each ms
        for _ in 0..3 {
            assert_eq!(turns.wait_until(after(500)), None);
            turns.take(after(500));
        }
        assert_eq!(turns.wait_until(after(500)), Some(after(501)));
    }
}
