//! Counts and bounds as the papers write them, and the contract of a reference implementation.

use dueling_bandits::{Duel, Outcome, PolicyRng, Tally};
use rand_distr::{Beta, Distribution};

/// A policy, implemented literally from its paper.
pub trait ReferencePolicy {
    /// The next duel.
    fn select(&self, rng: &mut PolicyRng) -> Duel;

    /// Fold the outcome of one duel. A self-duel is a step without information.
    fn fold(&mut self, duel: Duel, outcome: Outcome);
}

/// Counts and steps in the papers' notation.
#[derive(Debug, Clone)]
pub struct Reference {
    pub alpha: f64,
    pub steps: u64,
    /// `W`, with half wins.
    pub wins: Vec<Vec<f64>>,
    pub retired: Vec<bool>,
}

impl Reference {
    pub fn new(rankers: usize, alpha: f64) -> Self {
        Self {
            alpha,
            steps: 0,
            wins: vec![vec![0.0; rankers]; rankers],
            retired: vec![false; rankers],
        }
    }

    /// The counts of a tally.
    pub fn of(tally: &Tally, alpha: f64) -> Self {
        let k = tally.rankers();
        let wins = (0..k).map(|i| (0..k).map(|j| tally.wins(i, j)).collect()).collect();
        Self { alpha, steps: tally.steps(), wins, retired: vec![false; k] }
    }

    pub fn record(&mut self, duel: Duel, outcome: Outcome) {
        self.steps += 1;
        if !duel.is_self() {
            let (first, second) = outcome.half_wins();
            self.wins[duel.first][duel.second] += f64::from(first) / 2.0;
            self.wins[duel.second][duel.first] += f64::from(second) / 2.0;
        }
    }

    pub fn rankers(&self) -> usize {
        self.wins.len()
    }

    pub fn active(&self) -> Vec<usize> {
        (0..self.wins.len()).filter(|&i| !self.retired[i]).collect()
    }

    pub fn plays(&self, i: usize, j: usize) -> f64 {
        self.wins[i][j] + self.wins[j][i]
    }

    /// `p̂`, 1/2 without comparisons.
    pub fn mean(&self, i: usize, j: usize) -> f64 {
        let plays = self.plays(i, j);
        if plays == 0.0 { 0.5 } else { self.wins[i][j] / plays }
    }

    /// `α ln t`.
    fn width(&self) -> f64 {
        self.alpha * (self.steps as f64 + 1.0).ln()
    }

    fn upper_at(&self, width: f64, i: usize, j: usize) -> f64 {
        if i == j {
            0.5
        } else if self.plays(i, j) == 0.0 {
            f64::INFINITY
        } else {
            self.wins[i][j] / self.plays(i, j) + (width / self.plays(i, j)).sqrt()
        }
    }

    pub fn upper(&self, i: usize, j: usize) -> f64 {
        self.upper_at(self.width(), i, j)
    }

    pub fn lower(&self, i: usize, j: usize) -> f64 {
        1.0 - self.upper(j, i)
    }

    /// All bounds at this step.
    pub fn bounds(&self) -> ReferenceBounds {
        let k = self.wins.len();
        let width = self.width();
        let row = |i: usize| (0..k).map(|j| self.upper_at(width, i, j)).collect();
        ReferenceBounds { upper: (0..k).map(row).collect() }
    }

    /// `θ[i][j] ~ Beta(W[i][j] + 1, W[j][i] + 1)`.
    pub fn theta(&self, i: usize, j: usize, rng: &mut PolicyRng) -> f64 {
        let beta = Beta::new(self.wins[i][j] + 1.0, self.wins[j][i] + 1.0);
        beta.expect("shapes of at least 1").sample(rng)
    }

    /// `argmax` that returns all maximisers.
    pub fn best<V: PartialOrd + Copy>(items: &[usize], value: impl Fn(usize) -> V) -> Vec<usize> {
        let mut best: (Vec<usize>, Option<V>) = (Vec::new(), None);
        for &i in items {
            let value = value(i);
            match best.1 {
                Some(top) if value < top => {}
                Some(top) if value == top => best.0.push(i),
                _ => best = (vec![i], Some(value)),
            }
        }
        best.0
    }
}

/// The confidence bounds of all pairs at one step.
#[derive(Debug, Clone)]
pub struct ReferenceBounds {
    upper: Vec<Vec<f64>>,
}

impl ReferenceBounds {
    pub fn upper(&self, i: usize, j: usize) -> f64 {
        self.upper[i][j]
    }

    pub fn lower(&self, i: usize, j: usize) -> f64 {
        1.0 - self.upper[j][i]
    }
}

/// `d(p, 1/2)`.
pub fn divergence_from_half(p: f64) -> f64 {
    let term = |q: f64| if q == 0.0 { 0.0 } else { q * (2.0 * q).ln() };
    term(p) + term(1.0 - p)
}
