//! RMED1 (Komiyama et al., COLT 2015, Algorithms 1 and 2), with the steps of
//! `crates/lab/notes/comparators.md` §6.

use dueling_bandits::{Duel, Outcome, PolicyRng};

use super::{Reference, ReferencePolicy, divergence_from_half};

#[derive(Debug, Clone)]
pub struct ReferenceRmed {
    pub reference: Reference,
    /// `I_i`, computed from the counts of `reference`.
    divergence: Vec<f64>,
    queue: Vec<(usize, usize)>,
    remaining: Vec<usize>,
    next: Vec<usize>,
}

impl ReferenceRmed {
    pub fn new(rankers: usize) -> Self {
        Self {
            reference: Reference::new(rankers, 1.0),
            divergence: vec![0.0; rankers],
            queue: pairs(rankers).collect(),
            remaining: (0..rankers).collect(),
            next: Vec::new(),
        }
    }

    fn opponents(&self, i: usize) -> impl Iterator<Item = usize> {
        (0..self.reference.rankers()).filter(move |&j| j != i && self.reference.mean(i, j) <= 0.5)
    }

    fn divergences(&self) -> Vec<f64> {
        let term = |i: usize, j: usize| {
            self.reference.plays(i, j) * divergence_from_half(self.reference.mean(i, j))
        };
        (0..self.reference.rankers()).map(|i| self.opponents(i).map(|j| term(i, j)).sum()).collect()
    }

    fn star(&self) -> usize {
        Reference::best(&self.reference.active(), |i| -self.divergence[i])[0]
    }
}

fn pairs(rankers: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rankers).flat_map(move |j| (0..j).map(move |i| (i, j)))
}

impl ReferencePolicy for ReferenceRmed {
    fn select(&self, _rng: &mut PolicyRng) -> Duel {
        if let Some(&(i, j)) = self.queue.first() {
            return Duel::new(i, j);
        }
        let (l, star) = (self.remaining[0], self.star());
        let opponents: Vec<_> = self.opponents(l).collect();
        if opponents.is_empty() || opponents.contains(&star) {
            return Duel::new(l, star);
        }
        let others: Vec<_> = (0..self.reference.rankers()).filter(|&j| j != l).collect();
        Duel::new(l, Reference::best(&others, |j| -self.reference.mean(l, j))[0])
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.reference.record(duel, outcome);
        self.divergence = self.divergences();
        if outcome == Outcome::None && !duel.is_self() {
            return;
        }
        if !self.queue.is_empty() {
            self.queue.remove(0);
            return;
        }
        self.remaining.retain(|&l| l != duel.first);
        let k = self.reference.rankers();
        let threshold = (self.reference.steps as f64).ln() + 0.3 * (k as f64).powf(1.01);
        let least = self.divergence[self.star()];
        let listed = |list: &[usize]| -> Vec<bool> {
            let mut flags = vec![false; k];
            list.iter().for_each(|&i| flags[i] = true);
            flags
        };
        let (remaining, next) = (listed(&self.remaining), listed(&self.next));
        for j in 0..k {
            let plausible = self.divergence[j] - least <= threshold;
            if !remaining[j] && plausible && !next[j] {
                self.next.push(j);
            }
        }
        if self.remaining.is_empty() {
            self.next.sort_unstable();
            self.remaining = std::mem::take(&mut self.next);
        }
    }
}
