//! SAVAGE's sampled independence predicate ("SAVAGE Sampling", `algorithms-comparators.md` §11.3),
//! for the set of Copeland winners. Every matrix is feasible, so a redraw never fails.

use rand::RngExt;

use super::{Duel, Intervals, Pairs, PolicyRng};
use crate::step_rng;

/// Samples `m` random matrices within the intervals, and tries `M` changes on each.
#[derive(Debug)]
pub(super) struct Sampler {
    pub(super) pairs: Pairs,
    /// The seed of the experiment.
    pub(super) seed: u64,
    /// `m`.
    pub(super) starts: u32,
    /// `M`.
    pub(super) steps: u32,
}

impl Sampler {
    /// For each pair number: whether a change of that pair, one of `active`, changed the set of
    /// Copeland winners. Only the side of 1/2 of an entry matters, so only that is drawn.
    pub(super) fn relevant(&self, intervals: &Intervals, active: &[u32], step: u64) -> Vec<bool> {
        let mut rng = step_rng(self.seed, step);
        let mut relevant = vec![false; self.pairs.count()];
        // 𝒲 \ 𝒮, in an order that is the same on every machine
        let mut candidates = active.to_vec();
        for _ in 0..self.starts {
            let mut matrix = Matrix::draw(self.pairs, intervals, &mut rng);
            let mut winners = matrix.winners();
            for _ in 0..self.steps {
                if candidates.is_empty() {
                    return relevant;
                }
                let at = rng.random_range(0..candidates.len());
                let number = candidates[at];
                let low_wins = draw_side(intervals, number, &mut rng);
                if !matrix.turn(self.pairs, number, low_wins) {
                    continue;
                }
                let now = matrix.winners();
                if now != winners {
                    relevant[number as usize] = true;
                    candidates.swap_remove(at);
                    winners = now;
                }
            }
        }
        relevant
    }
}

/// The part of a preference matrix that determines Copeland scores.
struct Matrix {
    low_wins: Vec<bool>,
    scores: Vec<usize>,
}

impl Matrix {
    fn draw(pairs: Pairs, intervals: &Intervals, rng: &mut PolicyRng) -> Self {
        let mut scores = vec![0; pairs.rankers];
        let mut low_wins = Vec::with_capacity(pairs.count());
        for (number, Duel { first, second }) in (0..).zip(pairs.all()) {
            let side = draw_side(intervals, number, rng);
            scores[if side { first } else { second }] += 1;
            low_wins.push(side);
        }
        Self { low_wins, scores }
    }

    /// Set the side of a pair. Returns whether the side changed.
    fn turn(&mut self, pairs: Pairs, number: u32, low_wins: bool) -> bool {
        let before = std::mem::replace(&mut self.low_wins[number as usize], low_wins);
        if before == low_wins {
            return false;
        }
        let Duel { first, second } = pairs.pair(number);
        let (winner, loser) = if low_wins { (first, second) } else { (second, first) };
        self.scores[winner] += 1;
        self.scores[loser] -= 1;
        true
    }

    fn winners(&self) -> Vec<usize> {
        let best = self.scores.iter().copied().max();
        (0..self.scores.len()).filter(|&i| Some(self.scores[i]) == best).collect()
    }
}

/// Whether a uniform value from the interval of the pair lies above 1/2.
fn draw_side(intervals: &Intervals, number: u32, rng: &mut PolicyRng) -> bool {
    let interval = intervals.get(number);
    let (low, high) = (interval.low.max(0.0), interval.high.min(1.0));
    match interval.verdict() {
        Some(side) => side,
        None if high > low => rng.random::<f64>() * (high - low) < high - 0.5,
        None => rng.random(),
    }
}
