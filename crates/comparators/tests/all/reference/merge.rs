//! MergeDTS (Li et al., 2020), with the points of `crates/lab/notes/comparators.md` §16.1. The batch
//! of a duel is random, as is the policy's default.

use dueling_bandits::{Duel, Outcome, PolicyRng, step_rng};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::{Reference, ReferencePolicy};

#[derive(Debug, Clone)]
pub struct ReferenceMergeDts {
    pub reference: Reference,
    /// `p`, the initial batch size.
    pub batch_size: usize,
    /// `C`.
    pub constant: f64,
    pub seed: u64,
    pub batches: Vec<Vec<usize>>,
    /// `S`, from 1.
    pub stage: u32,
}

impl ReferenceMergeDts {
    /// `u[i][j]`, where `width` is `α ln(t + C)`.
    fn upper(&self, width: f64, i: usize, j: usize) -> f64 {
        let plays = self.reference.plays(i, j);
        if plays == 0.0 {
            f64::INFINITY
        } else {
            self.reference.wins[i][j] / plays + (width / plays).sqrt()
        }
    }

    /// Point 4: while some rankers of the batch lose to others of it, remove one of them.
    fn prune(&mut self, at: usize, rng: &mut PolicyRng) {
        let width = self.reference.alpha * (self.reference.steps as f64 + 1.0 + self.constant).ln();
        while self.batches[at].len() > 1 {
            let batch = &self.batches[at];
            let loses = |&i: &usize| batch.iter().any(|&j| i != j && self.upper(width, i, j) < 0.5);
            let losers: Vec<_> = batch.iter().copied().filter(loses).collect();
            if losers.is_empty() {
                return;
            }
            let loser = losers[rng.random_range(0..losers.len())];
            self.batches[at].retain(|&i| i != loser);
        }
    }

    /// Point 1.
    fn join_singles(&mut self) {
        while self.batches.len() > 1 {
            let Some(at) = self.batches.iter().position(|batch| batch.len() == 1) else { return };
            let single = self.batches.remove(at);
            let next = at % self.batches.len();
            self.batches[next].extend(single);
        }
    }

    /// Merge the largest batch with the smallest, unless the result exceeds `1.5 p`.
    fn merge(&mut self, rng: &mut PolicyRng) {
        self.batches.shuffle(rng);
        self.batches.sort_by_key(Vec::len);
        let mut merged = Vec::new();
        while let Some(mut large) = self.batches.pop() {
            let fits = |small: &Vec<usize>| 2 * (small.len() + large.len()) <= 3 * self.batch_size;
            if self.batches.first().is_some_and(fits) {
                large.extend(self.batches.remove(0));
            }
            merged.push(large);
        }
        self.batches = merged;
    }
}

impl ReferencePolicy for ReferenceMergeDts {
    /// Points 2 and 3.
    fn select(&self, rng: &mut PolicyRng) -> Duel {
        let several: Vec<_> = self.batches.iter().filter(|batch| batch.len() > 1).collect();
        if several.is_empty() {
            return Duel::new(self.batches[0][0], self.batches[0][0]);
        }
        let batch = several[rng.random_range(0..several.len())];
        let mut score = vec![0; self.reference.rankers()];
        for (at, &i) in batch.iter().enumerate() {
            for &j in &batch[..at] {
                score[if self.reference.theta(i, j, rng) > 0.5 { i } else { j }] += 1;
            }
        }
        let best = Reference::best(batch, |i| score[i]);
        let c = best[rng.random_range(0..best.len())];
        let others: Vec<_> = batch.iter().copied().filter(|&j| j != c).collect();
        let phi: Vec<_> = others.iter().map(|&j| self.reference.theta(j, c, rng)).collect();
        let places: Vec<_> = (0..others.len()).collect();
        Duel::new(c, others[Reference::best(&places, |at| -phi[at])[0]])
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.reference.record(duel, outcome);
        if duel.is_self() {
            return;
        }
        let mut rng = step_rng(self.seed, self.reference.steps);
        let both = |batch: &Vec<usize>| batch.contains(&duel.first) && batch.contains(&duel.second);
        if let Some(at) = self.batches.iter().position(both) {
            self.prune(at, &mut rng);
        }
        self.join_singles();
        let left: usize = self.batches.iter().map(Vec::len).sum();
        if self.batches.len() < 2 || left > self.reference.rankers() >> self.stage {
            return;
        }
        self.merge(&mut rng);
        let smallest = self.batches.iter().map(Vec::len).min().unwrap_or(0);
        if 2 * smallest <= self.batch_size && self.batches.len() > 1 {
            self.merge(&mut rng);
        }
        self.stage += 1;
    }
}
