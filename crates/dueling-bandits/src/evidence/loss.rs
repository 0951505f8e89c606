//! How many lost answers a verdict withstands, if they are lost in the worst way: only duels that
//! the winner lost.

use crate::evidence::VerdictTracker;
use crate::{Duel, Outcome, Tally};

/// Largest share of lost answers that is tried, and the number of halvings of the range.
pub const MOST_LOST: f64 = 0.5;
const HALVINGS: u32 = 12;

/// Whether the verdict of `tracker` on `tally` would also name `winner` if this share of the duels
/// that it lost had gone unanswered, and none that it won. With a share of 1 it does not.
pub fn withstands(
    tracker: &VerdictTracker,
    tally: &Tally,
    active: &[usize],
    winner: usize,
    share: f64,
) -> bool {
    let Ok(place) = active.binary_search(&winner) else { return false };
    let evidence = tracker.evidence(tally, active);
    let mut with_lost = tally.clone();
    for (other, &ranker) in active.iter().enumerate().filter(|&(other, _)| other != place) {
        let more = evidence.wins(other, place) * share / (1.0 - share);
        // of unanswered duels alone there is no verdict
        let Some(more) = Some(more.ceil()).filter(|more| *more < 1e9) else { return false };
        with_lost.record_run(Duel::new(ranker, winner), Outcome::First, more as u32);
    }
    let judged = tracker.judge(tracker.target(), &with_lost, active);
    let certified = judged.verdict().map_or(&[][..], |verdict| &verdict.winners);
    certified.iter().any(|&certified| usize::from(certified) == winner)
}

/// The largest share that [`withstands`] accepts, 0 to [`MOST_LOST`].
pub fn most_withstood(
    tracker: &VerdictTracker,
    tally: &Tally,
    active: &[usize],
    winner: usize,
) -> f64 {
    let (mut stands, mut falls) = (0.0, MOST_LOST);
    for _ in 0..HALVINGS {
        let lost = 0.5 * (stands + falls);
        if withstands(tracker, tally, active, winner, lost) { stands = lost } else { falls = lost }
    }
    stands
}
