//! How many lost answers a verdict withstands, if they are lost in the worst way: its winner would
//! have lost each of them.
//!
//! Of the duels of a pair a share `u` was never answered. With `n` answered duels of the pair these
//! are `u n / (1 - u)`, however few of the others the winner has lost.

use crate::evidence::VerdictTracker;
use crate::{Duel, Outcome, Tally};

/// Largest share of lost answers that is tried, and the number of halvings of the range.
pub const MOST_LOST: f64 = 0.5;
const HALVINGS: u32 = 12;

/// A verdict, and the pages that it rests on.
#[derive(Debug, Clone, Copy)]
pub struct Loss<'a> {
    /// Has given the verdict, on the counts of `tally`.
    pub tracker: &'a VerdictTracker,
    /// See `tracker`.
    pub tally: &'a Tally,
    /// The active rankers, ascending.
    pub active: &'a [usize],
    /// A winner of the verdict.
    pub winner: usize,
    /// Answered duels for each one that had a winner, 1 or more.
    pub answered_each: f64,
}

impl Loss<'_> {
    /// Whether the verdict would name the winner too if it had lost all duels that were not
    /// answered, and these were this share of the duels of each pair. With a share of 1 it does
    /// not.
    pub fn is_withstood(&self, share: f64) -> bool {
        let &Self { tracker, tally, active, winner, answered_each } = self;
        let counted = tracker.counted().of(tally);
        let mut with_lost = tally.clone();
        for &rival in active.iter().filter(|&&rival| rival != winner) {
            let answered = counted.plays(rival, winner) * answered_each;
            // of unanswered duels alone there is no verdict
            let more = Some((answered * share / (1.0 - share)).ceil()).filter(|more| *more < 1e9);
            let Some(more) = more else { return false };
            with_lost.record_run(Duel::new(rival, winner), Outcome::First, more as u32);
        }
        tracker.would_name(winner, &with_lost, active)
    }

    /// The largest share that [is withstood](Self::is_withstood), 0 to [`MOST_LOST`].
    pub fn most_withstood(&self) -> f64 {
        let (mut stands, mut falls) = (0.0, MOST_LOST);
        for _ in 0..HALVINGS {
            let lost = 0.5 * (stands + falls);
            if self.is_withstood(lost) { stands = lost } else { falls = lost }
        }
        stands
    }
}
