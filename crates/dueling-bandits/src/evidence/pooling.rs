//! The prior of each pair, predicted from the other pairs: a Bradley-Terry fit to all counts, and
//! its weight.
//!
//! A ranker that beats strong ones probably beats weak ones. A posterior with independent pairs
//! ignores this. It treats pairs with few comparisons as even, all rankers look alike, and early
//! regret is far too low. Here each pair's prior is `Beta(1 + λ π, 1 + λ (1 - π))`: the uniform
//! prior, and `λ` pseudo-duels with the outcome `π` that a Bradley-Terry model predicts from all
//! the *other* pairs.
//!
//! `λ` is drawn in proportion to how well it would have predicted each pair. Where preferences
//! follow no order, `λ` becomes 0 and the pairs are independent again (empirical Bayes; Efron,
//! "Large-scale inference", 2010, ch. 1).
//!
//! The fit is the maximum a posteriori under independent normal strengths. Its prediction of a pair
//! without that pair's own duels is the usual one-step approximation by leverage (Pregibon,
//! "Logistic regression diagnostics", Annals of Statistics 1981).

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::{PolicyRng, Tally};

/// Prior standard deviation of a strength, in logits: with 1.5, 95 % of all preferences lie between
/// 0.015 and 0.985.
const SPREAD: f64 = 1.5;
/// Most sweeps over all strengths, and the step at which the fit has converged.
const SWEEPS_MAX: usize = 40;
const CONVERGED: f64 = 1e-4;
/// The values of `λ`.
const PSEUDO_DUELS: [f64; 8] = [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// A fit to a tally.
#[derive(Debug)]
pub(super) struct Pooling {
    strengths: Vec<f64>,
    /// Standard deviation of each strength, given the others.
    deviations: Vec<f64>,
    /// Cumulative probabilities of [`PSEUDO_DUELS`]; the last is 1.
    cumulative: [f64; PSEUDO_DUELS.len()],
}

/// One draw from the posterior of the fit.
#[derive(Debug)]
pub(super) struct Pooled<'a> {
    pooling: &'a Pooling,
    shifts: Vec<f64>,
    pseudo_duels: f64,
}

impl Pooling {
    /// Fit to `tally`. Deterministic.
    pub fn new(tally: &Tally) -> Self {
        let rankers = tally.rankers();
        // the opponents of each ranker so far
        let met: Vec<Vec<usize>> = (0..rankers)
            .map(|i| (0..rankers).filter(|&j| j != i && tally.half_plays(i, j) > 0).collect())
            .collect();
        let ridge = 1.0 / (SPREAD * SPREAD);
        let mut strengths = vec![0.0; rankers];
        let mut curvatures = vec![ridge; rankers];
        for _ in 0..SWEEPS_MAX {
            let mut largest = 0.0_f64;
            for i in 0..rankers {
                let (mut slope, mut curvature) = (-ridge * strengths[i], ridge);
                for &j in &met[i] {
                    let p = logistic(strengths[i] - strengths[j]);
                    let plays = tally.plays(i, j);
                    slope += tally.wins(i, j) - plays * p;
                    curvature += plays * p * (1.0 - p);
                }
                let step = (slope / curvature).clamp(-1.0, 1.0);
                strengths[i] += step;
                curvatures[i] = curvature;
                largest = largest.max(step.abs());
            }
            if largest < CONVERGED {
                break;
            }
        }
        let deviations = curvatures.iter().map(|curvature| curvature.sqrt().recip()).collect();
        let mut pooling = Self { strengths, deviations, cumulative: [1.0; PSEUDO_DUELS.len()] };
        pooling.cumulative = pooling.weigh(tally, &met);
        pooling
    }

    /// Cumulative probabilities of [`PSEUDO_DUELS`], equal a priori: how well each value would have
    /// predicted every pair from the others.
    fn weigh(&self, tally: &Tally, met: &[Vec<usize>]) -> [f64; PSEUDO_DUELS.len()] {
        let compared = met.iter().map(Vec::len).sum::<usize>() / 2;
        // fewer pairs than unknowns: no pair predicts another
        if compared < met.len() {
            return [1.0; PSEUDO_DUELS.len()];
        }
        let mut evidence = [0.0; PSEUDO_DUELS.len()];
        for (i, met) in met.iter().enumerate() {
            for &j in met.iter().take_while(|&&j| j < i) {
                let (wins, losses) = (tally.wins(i, j), tally.wins(j, i));
                let p = logistic(self.without(tally, i, j));
                for (evidence, pseudo_duels) in evidence.iter_mut().zip(PSEUDO_DUELS) {
                    let (a, b) = (1.0 + pseudo_duels * p, 1.0 + pseudo_duels * (1.0 - p));
                    *evidence += ln_beta(a + wins, b + losses) - ln_beta(a, b);
                }
            }
        }
        let best = evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = evidence.map(|evidence| libm::exp(evidence - best));
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut cumulative = weights.map(|weight| {
            sum += weight / total;
            sum
        });
        cumulative[PSEUDO_DUELS.len() - 1] = 1.0;
        cumulative
    }

    /// The logit of `P(i beats j)` that all other pairs predict.
    fn without(&self, tally: &Tally, i: usize, j: usize) -> f64 {
        let logit = self.strengths[i] - self.strengths[j];
        let plays = tally.plays(i, j);
        if plays == 0.0 {
            return logit;
        }
        let p = logistic(logit);
        let variance = self.deviations[i].powi(2) + self.deviations[j].powi(2);
        // near 0 where almost all that is known of the two comes from their own duels
        let left = (1.0 - plays * p * (1.0 - p) * variance).max(0.05);
        logit - (tally.wins(i, j) - plays * p) * variance / left
    }

    /// Draw the strengths from approximately their posterior, and a number of pseudo-duels.
    pub fn draw(&self, rng: &mut PolicyRng) -> Pooled<'_> {
        let pick: f64 = rng.random();
        let at = self.cumulative.iter().position(|&sum| pick < sum).unwrap_or(0);
        let shifts = self
            .deviations
            .iter()
            .map(|deviation| deviation * rng.sample::<f64, _>(StandardNormal))
            .collect();
        Pooled { pooling: self, shifts, pseudo_duels: PSEUDO_DUELS[at] }
    }
}

impl Pooled<'_> {
    /// Wins of `i` over `j` and of `j` over `i`, including the pseudo-duels; the rest of the prior
    /// is uniform.
    pub fn wins(&self, tally: &Tally, i: usize, j: usize) -> (f64, f64) {
        let (wins, losses) = (tally.wins(i, j), tally.wins(j, i));
        if self.pseudo_duels == 0.0 {
            return (wins, losses);
        }
        let p = logistic(self.pooling.without(tally, i, j) + self.shifts[i] - self.shifts[j]);
        (wins + self.pseudo_duels * p, losses + self.pseudo_duels * (1.0 - p))
    }
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}

fn ln_beta(a: f64, b: f64) -> f64 {
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}
