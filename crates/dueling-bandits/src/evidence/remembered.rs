//! The evidence of all pairs, of which a comparison changes one: the others are remembered.

use crate::evidence::certificate::PairEvidence;

/// `ln E` of all pairs, each with the wins that it was computed from. It is a function of these wins
/// alone, so what was asked before changes the time that an answer takes, and no answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Remembered {
    rankers: usize,
    /// Wins of x over y, at `x * K + y`.
    wins: Vec<f64>,
    ln: Vec<f64>,
}

impl Remembered {
    /// `ln E(x≻y)` at `x * K + y`.
    pub(super) fn all_of(&mut self, pairs: &PairEvidence) -> &[f64] {
        let rankers = pairs.rankers();
        if self.rankers != rankers {
            // without wins there is no evidence
            *self = Self {
                rankers,
                wins: vec![0.0; rankers * rankers],
                ln: vec![0.0; rankers * rankers],
            };
        }
        for x in 1..rankers {
            for y in 0..x {
                let (there, back) = (x * rankers + y, y * rankers + x);
                let (won, lost) = (pairs.wins(x, y), pairs.wins(y, x));
                if (self.wins[there], self.wins[back]) != (won, lost) {
                    (self.wins[there], self.wins[back]) = (won, lost);
                    (self.ln[there], self.ln[back]) = (pairs.ln(x, y), pairs.ln(y, x));
                }
            }
        }
        &self.ln
    }

    /// Estimated bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        (self.wins.len() + self.ln.len()) * size_of::<f64>()
    }
}
