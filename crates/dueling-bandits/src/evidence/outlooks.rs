//! What the counts say about each pair: the evidence so far, and what further comparisons promise.

use crate::Tally;
use crate::evidence::verdict::VerdictTracker;

/// Added to the risk of a claim, so that none has the weight 0.
const LEAST_RISK: f64 = 0.01;
/// Evidence that a comparison brings at least.
const LEAST_RATE: f64 = 1e-9;

/// What further comparisons of a pair promise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Outlook {
    /// Probability that the first ranker wins the pair with more than the null.
    probability: f64,
    /// Expected evidence of a comparison, in nats.
    pub(super) rate: f64,
}

impl Outlook {
    /// With the normal approximation of the posterior `Beta(wins + 1, losses + 1)`.
    pub(super) fn of(wins: f64, losses: f64, null: f64) -> Self {
        let count = wins + losses + 2.0;
        let mean = (wins + 1.0) / count;
        let variance = mean * (1.0 - mean) / (count + 1.0);
        let (lead, deviation) = (mean - null, variance.sqrt());
        let z = lead / deviation;
        let probability = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
        let above = (lead * lead + variance) * probability + lead * deviation * density;
        Self { probability, rate: (2.0 * above).max(LEAST_RATE) }
    }

    /// The probability that the claim is wrong, and a little more.
    pub(super) fn risk(&self) -> f64 {
        1.0 - self.probability + LEAST_RISK
    }
}

/// The pairs among the active rankers, kept up to date as counts come. A ranker is a place in the
/// list of active ones, and the pair (x, y) is at `x * K + y`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlooks {
    rankers: usize,
    /// `ln E(x≻y)`.
    evidence: Vec<f64>,
    /// Of "x beats y", or loses by less than the margin.
    outlooks: Vec<Outlook>,
    /// Probability that x beats y.
    above_half: Vec<f64>,
}

impl Outlooks {
    /// Of all pairs. O(K²).
    pub fn new(tracker: &VerdictTracker, tally: &Tally, active: &[usize]) -> Self {
        let rankers = active.len();
        let pairs = rankers * rankers;
        let mut outlooks = Self {
            rankers,
            evidence: vec![0.0; pairs],
            outlooks: vec![Outlook::default(); pairs],
            above_half: vec![0.5; pairs],
        };
        for x in 1..rankers {
            for y in 0..x {
                outlooks.update(tracker, tally, active, x, y);
            }
        }
        outlooks
    }

    /// The pair of places `x` and `y` has new counts. O(1).
    pub fn update(
        &mut self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        x: usize,
        y: usize,
    ) {
        let pairs = tracker.evidence(tally, active);
        let (won, lost) = (pairs.wins(x, y), pairs.wins(y, x));
        let margin = tracker.target().margin;
        let (there, back) = (x * self.rankers + y, y * self.rankers + x);
        // the only answer of a pair may have been left out
        (self.evidence[there], self.evidence[back]) = match won + lost > 0.0 {
            true => (pairs.ln(x, y), pairs.ln(y, x)),
            false => (0.0, 0.0),
        };
        self.outlooks[there] = Outlook::of(won, lost, 0.5 - margin);
        self.outlooks[back] = Outlook::of(lost, won, 0.5 - margin);
        // each from its own side, so that the order of the pair does not change the last digit
        for (at, won, lost) in [(there, won, lost), (back, lost, won)] {
            self.above_half[at] = match margin > 0.0 {
                true => Outlook::of(won, lost, 0.5).probability,
                false => self.outlooks[at].probability,
            };
        }
    }

    /// Number of rankers, `K`.
    pub(super) fn rankers(&self) -> usize {
        self.rankers
    }

    /// `ln E(x≻y)` of all pairs.
    pub fn evidence(&self) -> &[f64] {
        &self.evidence
    }

    /// Probability that `x` beats each ranker, itself with 1/2.
    pub(super) fn above_half(&self, x: usize) -> &[f64] {
        &self.above_half[x * self.rankers..(x + 1) * self.rankers]
    }

    /// What comparisons of `x` and `y` promise for "x beats y".
    pub(super) fn outlook(&self, x: usize, y: usize) -> Outlook {
        self.outlooks[x * self.rankers + y]
    }

    /// Estimated number of comparisons that "x beats y" lacks to the evidence `target`.
    pub(super) fn missing(&self, x: usize, y: usize, target: f64) -> f64 {
        let at = x * self.rankers + y;
        (target - self.evidence[at]).max(0.0) / self.outlooks[at].rate
    }
}
