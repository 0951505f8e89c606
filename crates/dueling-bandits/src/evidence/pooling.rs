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
//! "Logistic regression diagnostics", Annals of Statistics 1981): with the information `w` of the
//! pair's own duels and the variance `v` of its logit given all duels, the leverage is `h = w v`,
//! and without those duels the logit moves by its residual times `v / (1 - h)`, which is then also
//! its variance. Up to [`EXACT_MAX`] rankers `v` comes from the whole information matrix. With
//! more, it is the sum of the variances of both strengths given all others, which is too small.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::evidence::predictive::PredictiveEvidence;
use crate::math::cholesky::Covariance;
use crate::pairs::pair_index;
use crate::{PolicyRng, Tally};

/// Prior standard deviation of a strength, in logits: with 1.5, 95 % of all preferences lie between
/// 0.015 and 0.985.
const SPREAD: f64 = 1.5;
/// The information of the prior about a strength.
const RIDGE: f64 = 1.0 / (SPREAD * SPREAD);
/// Most sweeps over all strengths, and the step at which the fit has converged.
const SWEEPS_MAX: usize = 40;
const CONVERGED: f64 = 1e-4;
/// Most rankers with an exact covariance of the strengths: it takes a time of `K³`.
const EXACT_MAX: usize = 256;
/// Sums that are formed side by side, as many as the widest register holds.
const LANES: usize = 8;
/// Least value of `1 - h`.
const LEFT_MIN: f64 = 1e-6;
/// The same with an approximate variance, which may make `h` larger than 1.
const LEFT_MIN_APPROXIMATE: f64 = 0.05;
/// The values of `λ`.
const PSEUDO_DUELS: [f64; 8] = [0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// A fit to a tally.
#[derive(Debug)]
pub(super) struct Pooling {
    strengths: Vec<f64>,
    spread: Spread,
    /// By pair `low < high`: what the other pairs predict of it.
    predictions: Vec<Prediction>,
    /// Cumulative probabilities of [`PSEUDO_DUELS`]; the last is 1.
    cumulative: [f64; PSEUDO_DUELS.len()],
}

/// How uncertain the strengths are.
#[derive(Debug)]
enum Spread {
    /// Their covariance.
    Exact(Covariance),
    /// The standard deviation of each, given the others.
    Conditional(Vec<f64>),
}

/// The prediction of all other pairs for a pair `low < high`.
#[derive(Debug, Clone, Copy)]
struct Prediction {
    /// The logit of `P(low beats high)`.
    logit: f64,
    /// The standard deviation of this logit over that of the difference of the strengths.
    widening: f64,
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
        let plays = tally.all_plays();
        let (strengths, curvatures) = fit(tally, &plays);
        let spread = if rankers <= EXACT_MAX {
            Spread::Exact(Covariance::inverse_of(information(&plays, &strengths), rankers))
        } else {
            Spread::Conditional(curvatures.iter().map(|one| one.sqrt().recip()).collect())
        };
        let mut predictions = Vec::with_capacity(rankers * (rankers - 1) / 2);
        for high in 1..rankers {
            for low in 0..high {
                let plays = plays[high * rankers + low];
                let wins = plays - tally.wins(high, low);
                predictions.push(spread.without((wins, plays), &strengths, low, high));
            }
        }
        let mut pooling =
            Self { strengths, spread, predictions, cumulative: [1.0; PSEUDO_DUELS.len()] };
        pooling.cumulative = pooling.weigh(tally, &plays);
        pooling
    }

    /// Cumulative probabilities of [`PSEUDO_DUELS`], equal a priori: how well each value would have
    /// predicted every pair from the others.
    fn weigh(&self, tally: &Tally, plays: &[f64]) -> [f64; PSEUDO_DUELS.len()] {
        let rankers = tally.rankers();
        let compared = plays.iter().filter(|&&plays| plays > 0.0).count() / 2;
        // fewer pairs than unknowns: no pair predicts another
        if compared < rankers {
            return [1.0; PSEUDO_DUELS.len()];
        }
        let mut evidence = PredictiveEvidence::new(PSEUDO_DUELS);
        for high in 1..rankers {
            for low in 0..high {
                let plays = plays[high * rankers + low];
                if plays > 0.0 {
                    let p = logistic(-self.predictions[pair_index(low, high)].logit);
                    let wins = tally.wins(high, low);
                    evidence.add(p, wins, plays - wins);
                }
            }
        }
        let evidence = evidence.ln();
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

    /// Draw the strengths from approximately their posterior. The number of pseudo-duels is the
    /// quantile `pick` of its distribution.
    pub fn draw(&self, pick: f64, rng: &mut PolicyRng) -> Pooled<'_> {
        let at = self.cumulative.iter().position(|&sum| pick < sum).unwrap_or(0);
        let normals: Vec<f64> =
            (0..self.strengths.len()).map(|_| rng.sample(StandardNormal)).collect();
        let shifts = match &self.spread {
            Spread::Exact(covariance) => covariance.correlate(&normals),
            Spread::Conditional(deviations) => deviations
                .iter()
                .zip(&normals)
                .map(|(deviation, normal)| deviation * normal)
                .collect(),
        };
        Pooled { pooling: self, shifts, pseudo_duels: PSEUDO_DUELS[at] }
    }
}

impl Pooled<'_> {
    /// The number of pseudo-duels of each pair.
    pub fn pseudo_duels(&self) -> f64 {
        self.pseudo_duels
    }

    /// Wins of `i` over `j` and of `j` over `i`, including the pseudo-duels; the rest of the prior
    /// is uniform.
    pub fn wins(&self, tally: &Tally, i: usize, j: usize) -> (f64, f64) {
        let (wins, losses) = (tally.wins(i, j), tally.wins(j, i));
        if self.pseudo_duels == 0.0 {
            return (wins, losses);
        }
        let (low, high) = (i.min(j), i.max(j));
        let Prediction { logit, widening } = self.pooling.predictions[pair_index(low, high)];
        let drawn = logit + (self.shifts[low] - self.shifts[high]) * widening;
        let p = logistic(if low == i { drawn } else { -drawn });
        (wins + self.pseudo_duels * p, losses + self.pseudo_duels * (1.0 - p))
    }
}

impl Spread {
    /// The prediction of all pairs but `{low, high}`, of whose `plays` comparisons `low` has won
    /// `wins`.
    fn without(
        &self,
        (wins, plays): (f64, f64),
        strengths: &[f64],
        low: usize,
        high: usize,
    ) -> Prediction {
        let logit = strengths[low] - strengths[high];
        if plays == 0.0 {
            return Prediction { logit, widening: 1.0 };
        }
        let p = logistic(logit);
        let (variance, least) = match self {
            Self::Exact(covariance) => (covariance.of_difference(low, high), LEFT_MIN),
            Self::Conditional(deviations) => {
                (deviations[low].powi(2) + deviations[high].powi(2), LEFT_MIN_APPROXIMATE)
            }
        };
        let left = (1.0 - plays * p * (1.0 - p) * variance).max(least);
        let residual = wins - plays * p;
        Prediction { logit: logit - residual * variance / left, widening: left.sqrt().recip() }
    }
}

/// The strengths that are most probable after `tally`, and the information about each given all
/// others. `plays` are the comparisons of all pairs, row-major.
fn fit(tally: &Tally, plays: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let rankers = tally.rankers();
    let won: Vec<f64> =
        (0..rankers).map(|i| (0..rankers).map(|j| tally.wins(i, j)).sum()).collect();
    let mut strengths = vec![0.0; rankers];
    let mut curvatures = vec![RIDGE; rankers];
    // with the exponentials of the strengths, the probability of a win takes only a division; a
    // strength is at most 40 in size, as each sweep moves it by 1 at most
    let mut powers = vec![1.0; rankers];
    let level = Level::new();
    for _ in 0..SWEEPS_MAX {
        let mut largest = 0.0_f64;
        for (i, plays) in plays.chunks_exact(rankers).enumerate() {
            let own = powers[i];
            let (expected, information) =
                dispatch!(level, simd => expected_wins(simd, own, plays, &powers));
            let (slope, curvature) =
                (won[i] - expected - RIDGE * strengths[i], RIDGE + information);
            let step = (slope / curvature).clamp(-1.0, 1.0);
            strengths[i] += step;
            powers[i] = libm::exp(strengths[i]);
            curvatures[i] = curvature;
            largest = largest.max(step.abs());
        }
        if largest < CONVERGED {
            break;
        }
    }
    (strengths, curvatures)
}

/// The expected number of wins of a ranker in its comparisons, and their variance. `own` and
/// `powers` are the exponentials of its strength and of all. Ranker itself and rankers that it has
/// not met add nothing, because they have 0 plays.
///
/// Compiled once for each register width. The result does not depend on it: the order of the sums
/// is fixed.
#[inline(always)]
fn expected_wins<S: Simd>(_simd: S, own: f64, plays: &[f64], powers: &[f64]) -> (f64, f64) {
    let of = |plays: f64, other: f64| {
        let p = own / (own + other);
        let wins = plays * p;
        (wins, wins * (1.0 - p))
    };
    let (plays, last_plays) = plays.as_chunks::<LANES>();
    let (powers, last_powers) = powers.as_chunks::<LANES>();
    let (mut expected, mut variance) = ([0.0; LANES], [0.0; LANES]);
    for (plays, powers) in plays.iter().zip(powers) {
        for lane in 0..LANES {
            let (wins, spread) = of(plays[lane], powers[lane]);
            expected[lane] += wins;
            variance[lane] += spread;
        }
    }
    for (lane, (&plays, &power)) in last_plays.iter().zip(last_powers).enumerate() {
        let (wins, spread) = of(plays, power);
        expected[lane] += wins;
        variance[lane] += spread;
    }
    (expected.iter().sum(), variance.iter().sum())
}

/// The information of all duels and of the prior about the strengths, row-major.
fn information(plays: &[f64], strengths: &[f64]) -> Vec<f64> {
    let rankers = strengths.len();
    let mut information = vec![0.0; rankers * rankers];
    for i in 0..rankers {
        information[i * rankers + i] += RIDGE;
        for j in 0..i {
            let p = logistic(strengths[i] - strengths[j]);
            let own = plays[i * rankers + j] * p * (1.0 - p);
            for (row, column, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
                information[row * rankers + column] += sign * own;
            }
        }
    }
    information
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}
