//! D-TS and D-TS+ (Wu and Liu, 2016, Algorithms 1 and 2).

use dueling_bandits::{Duel, Outcome, PolicyRng};
use rand::RngExt;

use super::{Reference, ReferencePolicy, divergence_from_half};

#[derive(Debug, Clone)]
pub struct ReferenceDoubleThompson {
    pub reference: Reference,
    /// Whether this is D-TS+.
    pub plus: bool,
}

impl ReferencePolicy for ReferenceDoubleThompson {
    /// Steps 1-5: draws every beta, and computes every bound from scratch.
    fn select(&self, rng: &mut PolicyRng) -> Duel {
        let reference = &self.reference;
        let arms = reference.active();
        let k = reference.rankers();
        let bounds = reference.bounds();
        let optimistic =
            |i: usize| arms.iter().filter(|&&j| j != i && bounds.upper(i, j) > 0.5).count();
        let candidates = Reference::best(&arms, optimistic);
        let mut theta = vec![vec![0.5; k]; k];
        for &i in &arms {
            for &j in arms.iter().filter(|&&j| j > i) {
                theta[i][j] = reference.theta(i, j, rng);
                theta[j][i] = 1.0 - theta[i][j];
            }
        }
        let score = |i: usize| arms.iter().filter(|&&j| j != i && theta[i][j] > 0.5).count() as f64;
        let scores: Vec<f64> = (0..k).map(score).collect();
        let mut tied = Reference::best(&candidates, |i| scores[i]);
        if self.plus {
            let highest = arms.iter().map(|&i| scores[i]).fold(0.0, f64::max);
            let regret = |i: usize| -> f64 {
                let others = arms.iter().filter(|&&j| j != i);
                let price = |&j: &usize| {
                    (highest - (scores[i] + scores[j]) / 2.0) / divergence_from_half(theta[i][j])
                };
                others.map(price).sum()
            };
            tied = Reference::best(&tied, |i| -regret(i));
        }
        let first = tied[rng.random_range(0..tied.len())];
        let phi: Vec<f64> =
            (0..k).map(|i| if i == first { 0.5 } else { reference.theta(i, first, rng) }).collect();
        let open: Vec<usize> =
            arms.iter().copied().filter(|&i| bounds.lower(i, first) <= 0.5).collect();
        Duel::new(first, Reference::best(&open, |i| phi[i])[0])
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.reference.record(duel, outcome);
    }
}
