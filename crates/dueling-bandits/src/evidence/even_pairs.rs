//! Pairs that may be exactly even.
//!
//! A draw of the preferences gives each pair to one of its rankers. The strict Copeland score
//! counts an even pair for neither. From answers, a pair that is even cannot be told from one that
//! is nearly even, so a range of regret has to hold both readings.
//!
//! A pair is even with a probability. Its odds are one to ten before its answers; a pair that is
//! not even has any win probability. The evidence against 1/2 divides the odds.

use rand::RngExt;

use crate::math::mixture::evidence_against_half;
use crate::pairwise_sampling::PairwiseSample;
use crate::{PolicyRng, Roster, Tally, step_rng};

/// Odds of a pair to be even before its answers. With more, a winner of many nearly even pairs is
/// hardly ever drawn with all of its wins, and the range misses a truth in which one other pair is
/// even.
const ODDS: f64 = 0.1;
/// Pairs whose probability to be even is below this are taken as decided.
const NEGLIGIBLE: f64 = 1e-3;
/// Seed of the coins.
const COINS: u64 = 0x6576_656e;

/// The probability of each pair to be exactly even, and the coins that decide it in a draw. The
/// coins are the same whenever they are used.
#[derive(Debug)]
pub(super) struct EvenPairs {
    /// `(low, high)` with `low < high`, and its probability.
    pairs: Vec<(usize, usize, f64)>,
    coins: PolicyRng,
}

impl EvenPairs {
    /// The pairs with an active ranker that may be even after `tally`.
    pub fn of(tally: &Tally, roster: &Roster) -> Self {
        let pairs = (0..tally.rankers())
            .flat_map(|high| (0..high).map(move |low| (low, high)))
            .filter(|&(low, high)| roster.is_active(low) || roster.is_active(high))
            .map(|(low, high)| {
                let against = evidence_against_half(tally.wins(low, high), tally.wins(high, low));
                (low, high, ODDS / (ODDS + libm::exp(against)))
            })
            .filter(|&(.., probability)| probability > NEGLIGIBLE)
            .collect();
        Self { pairs, coins: step_rng(COINS, 0) }
    }

    /// Whether every pair is decided.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The scores where the pairs that the coins make even count for neither ranker. `scores` are
    /// those of `draw`: wins against active rankers.
    pub fn fewer_scores(
        &mut self,
        draw: &PairwiseSample<'_>,
        roster: &Roster,
        scores: &[u16],
    ) -> Vec<u16> {
        let mut fewer = scores.to_vec();
        for &(low, high, probability) in &self.pairs {
            if !self.coins.random_bool(probability) {
                continue;
            }
            let high_wins = draw.row(high).wins(low);
            let (winner, loser) = if high_wins { (high, low) } else { (low, high) };
            if roster.is_active(loser) {
                fewer[winner] -= 1;
            }
        }
        fewer
    }
}
