//! D-TS and D-TS+ (Wu and Liu, 2016, Algorithms 1 and 2).

use rand::RngExt;
use rankduel::policy::{Chance, Duel, Outcome};

use super::{Plain, PlainForm, divergence_from_half};

#[derive(Debug, Clone)]
pub struct PlainDoubleThompson {
    pub plain: Plain,
    /// D-TS+.
    pub plus: bool,
}

impl PlainForm for PlainDoubleThompson {
    /// Steps 1-5: every beta drawn, every bound from scratch.
    fn select(&self, chance: &mut Chance) -> Duel {
        let plain = &self.plain;
        let arms = plain.active();
        let k = plain.rankers();
        let bounds = plain.bounds();
        let optimistic = |i: usize| arms.iter().filter(|&&j| j != i && bounds.upper(i, j) > 0.5).count();
        let candidates = Plain::best(&arms, optimistic);
        let mut theta = vec![vec![0.5; k]; k];
        for &i in &arms {
            for &j in arms.iter().filter(|&&j| j > i) {
                theta[i][j] = plain.theta(i, j, chance);
                theta[j][i] = 1.0 - theta[i][j];
            }
        }
        let score = |i: usize| arms.iter().filter(|&&j| j != i && theta[i][j] > 0.5).count() as f64;
        let scores: Vec<f64> = (0..k).map(score).collect();
        let mut tied = Plain::best(&candidates, |i| scores[i]);
        if self.plus {
            let highest = arms.iter().map(|&i| scores[i]).fold(0.0, f64::max);
            let regret = |i: usize| -> f64 {
                let others = arms.iter().filter(|&&j| j != i);
                let price = |&j: &usize| {
                    (highest - (scores[i] + scores[j]) / 2.0) / divergence_from_half(theta[i][j])
                };
                others.map(price).sum()
            };
            tied = Plain::best(&tied, |i| -regret(i));
        }
        let first = tied[chance.random_range(0..tied.len())];
        let phi: Vec<f64> =
            (0..k).map(|i| if i == first { 0.5 } else { plain.theta(i, first, chance) }).collect();
        let open: Vec<usize> = arms.iter().copied().filter(|&i| bounds.lower(i, first) <= 0.5).collect();
        Duel::new(first, Plain::best(&open, |i| phi[i])[0])
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.plain.record(duel, outcome);
    }
}
