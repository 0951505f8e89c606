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

/// Gives turns to responses, at equal intervals.
#[derive(Debug)]
pub(super) struct Pace {
    every: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    /// A pace for the processors of this machine.
    pub fn of_this_machine() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let processors = u32::try_from(processors).unwrap_or(u32::MAX);
        let every = Duration::from_secs(1) / PER_SECOND_AND_PROCESSOR.saturating_mul(processors);
        Self { every, next: Mutex::new(Instant::now()) }
    }

    /// Wait for a turn. Turns are given in the order of the calls; a caller that goes takes none.
    pub async fn turn(&self) {
        let mut next = self.next.lock().await;
        if *next > Instant::now() {
            tokio::time::sleep_until((*next).into()).await;
        }
        *next = following(*next, Instant::now(), self.every);
    }
}

/// The turn after one that was due at `turn` and taken at `now`.
fn following(turn: Instant, now: Instant, every: Duration) -> Instant {
    turn.max(now.checked_sub(KEPT).unwrap_or(now)) + every
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_each_other_at_the_interval_and_some_are_kept() {
        let (start, every) = (Instant::now(), Duration::from_millis(1));
        let after = |ms| start + Duration::from_millis(ms);
        let mut turn = following(start, start, every);
        assert_eq!(turn, after(1));
        // after a long silence: the turns of 2 ms at once, and then one each ms
        for due in [499, 500, 501] {
            turn = following(turn, after(500), every);
            assert_eq!(turn, after(due));
        }
    }
}
