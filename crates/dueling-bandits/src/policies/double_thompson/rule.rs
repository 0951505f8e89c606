//! How D-TS, D-TS+ and its variants differ.

use crate::Tally;
use crate::win_probability::{
    WinProbabilitySource, probability_above_half, probability_nearly_above_half,
};

/// How the first candidate is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstCandidate {
    /// D-TS: among the rankers with the fewest certain losses, the largest sampled score, ties at
    /// random.
    TieAtRandom,
    /// D-TS+: the same, ties by the expected cost of exploration.
    TieByRegret,
    /// The largest sampled score of all rankers; among equal scores the fewest certain losses, then
    /// as D-TS+.
    Soft,
    /// As `Soft`, with a sample that counts every duel twice, and the cost from means and variances
    /// instead of samples.
    Sharp,
}

/// The win probabilities of a tally in which every duel counts twice.
pub(super) struct Sharpened<'a>(pub &'a Tally);

impl Sharpened<'_> {
    /// Twice the half wins of `i` against `j`.
    fn half_wins(&self, i: usize, j: usize) -> u32 {
        self.0.half_wins(i, j).saturating_mul(2)
    }
}

impl WinProbabilitySource for Sharpened<'_> {
    fn above_half(&self, i: usize, j: usize) -> f64 {
        probability_above_half(self.half_wins(i, j), self.half_wins(j, i))
    }

    fn nearly_above_half(&self, i: usize, j: usize) -> Option<f64> {
        probability_nearly_above_half(self.half_wins(i, j), self.half_wins(j, i))
    }
}
