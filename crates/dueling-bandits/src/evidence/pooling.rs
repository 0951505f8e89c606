//! What the other pairs say of a pair: a Bradley-Terry fit to all counts, and how far it may be
//! trusted.
//!
//! A ranker that beats strong ones probably beats weak ones. A posterior in which every pair stands
//! alone does not know that: pairs that were compared a few times, or never, are coins to it, all
//! rankers look alike, and early regret is understated by far. Here each pair's prior is `Beta(1 +
//! λ π, 1 + λ (1 - π))`: `λ` imagined duels that go as a Bradley-Terry model predicts from all the
//! *other* pairs, on top of the uniform prior. `λ` is not assumed: it is drawn in proportion to how
//! well it would have predicted each pair, so that preferences that follow no order make it 0 and
//! leave every pair alone again (empirical Bayes; Efron, "Large-scale inference", 2010, ch. 1).
//!
//! The fit is the maximum a posteriori under independent normal strengths; what it says of a pair
//! without that pair's own duels is the usual one-step approximation by its leverage (Pregibon,
//! "Logistic regression diagnostics", Annals of Statistics 1981).

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::{PolicyRng, Tally};

/// Standard deviation of a strength, in logits, before any duel: 1.5 makes 95 % of all preferences
/// lie within 0.015 and 0.985.
const SPREAD: f64 = 1.5;
/// Sweeps over all strengths at most, and the step below which they have settled.
const SWEEPS_MAX: usize = 40;
const SETTLED: f64 = 1e-4;
/// Numbers of imagined duels among which one is drawn.
const IMAGINED: [f64; 8] = [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// A fit to a tally.
#[derive(Debug)]
pub(super) struct Pooling {
    strengths: Vec<f64>,
    /// Standard deviation of each strength, given the others.
    deviations: Vec<f64>,
    /// Share of each of [`IMAGINED`] so far, the last is 1.
    cumulative: [f64; IMAGINED.len()],
}

/// One draw of what the fit may be.
#[derive(Debug)]
pub(super) struct Pooled<'a> {
    pooling: &'a Pooling,
    shifts: Vec<f64>,
    imagined: f64,
}

impl Pooling {
    /// Fit to `tally`. Deterministic.
    pub fn new(tally: &Tally) -> Self {
        let rankers = tally.rankers();
        // only pairs that were compared say anything
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
            if largest < SETTLED {
                break;
            }
        }
        let deviations = curvatures.iter().map(|curvature| curvature.sqrt().recip()).collect();
        let mut pooling = Self { strengths, deviations, cumulative: [1.0; IMAGINED.len()] };
        pooling.cumulative = pooling.weigh(tally, &met);
        pooling
    }

    /// How probable each number of imagined duels is, all alike beforehand: how well each would
    /// have predicted every pair from the others.
    fn weigh(&self, tally: &Tally, met: &[Vec<usize>]) -> [f64; IMAGINED.len()] {
        let compared = met.iter().map(Vec::len).sum::<usize>() / 2;
        // as many unknowns as pairs: the others say nothing of any of them
        if compared < met.len() {
            return [1.0; IMAGINED.len()];
        }
        let mut evidence = [0.0; IMAGINED.len()];
        for (i, met) in met.iter().enumerate() {
            for &j in met.iter().take_while(|&&j| j < i) {
                let (wins, losses) = (tally.wins(i, j), tally.wins(j, i));
                let p = logistic(self.without(tally, i, j));
                for (evidence, imagined) in evidence.iter_mut().zip(IMAGINED) {
                    let (a, b) = (1.0 + imagined * p, 1.0 + imagined * (1.0 - p));
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
        cumulative[IMAGINED.len() - 1] = 1.0;
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
        // where the pair itself is all that is known of the two, nothing is left of it
        let left = (1.0 - plays * p * (1.0 - p) * variance).max(0.05);
        logit - (tally.wins(i, j) - plays * p) * variance / left
    }

    /// Draw the strengths from about their posterior, and a number of imagined duels.
    pub fn draw(&self, rng: &mut PolicyRng) -> Pooled<'_> {
        let pick: f64 = rng.random();
        let at = self.cumulative.iter().position(|&sum| pick < sum).unwrap_or(0);
        let shifts = self
            .deviations
            .iter()
            .map(|deviation| deviation * rng.sample::<f64, _>(StandardNormal))
            .collect();
        Pooled { pooling: self, shifts, imagined: IMAGINED[at] }
    }
}

impl Pooled<'_> {
    /// Wins of `i` over `j` and of `j` over `i`, imagined ones among them; the rest of the prior is
    /// uniform.
    pub fn wins(&self, tally: &Tally, i: usize, j: usize) -> (f64, f64) {
        let (wins, losses) = (tally.wins(i, j), tally.wins(j, i));
        if self.imagined == 0.0 {
            return (wins, losses);
        }
        let p = logistic(self.pooling.without(tally, i, j) + self.shifts[i] - self.shifts[j]);
        (wins + self.imagined * p, losses + self.imagined * (1.0 - p))
    }
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}

fn ln_beta(a: f64, b: f64) -> f64 {
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}
