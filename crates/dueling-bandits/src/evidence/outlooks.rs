//! What the counts say about each pair: the evidence so far, and what further comparisons promise.

use crate::evidence::certificate::PairEvidence;
use crate::evidence::refuters::Evidence;

/// Added to the risk of a claim, so that none has the weight 0.
const LEAST_RISK: f64 = 0.01;
/// Evidence that a comparison brings at least.
const LEAST_RATE: f64 = 1e-9;

/// What further comparisons of a pair promise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Outlook {
    probability: f64,
    /// Expected evidence of a comparison, in nats.
    pub(crate) rate: f64,
}

impl Outlook {
    /// With the normal approximation of the posterior `Beta(wins + 1, losses + 1)`.
    pub(crate) fn of(wins: f64, losses: f64, null: f64) -> Self {
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

    /// Probability that the first ranker wins the pair with more than the null.
    pub(crate) fn probability(&self) -> f64 {
        self.probability
    }

    /// The probability that the claim is wrong, and a little more.
    pub(in crate::evidence) fn risk(&self) -> f64 {
        1.0 - self.probability + LEAST_RISK
    }
}

/// The pairs among the active rankers, updated as counts come. A ranker is a place in the list of
/// active ones, and the pair (x, y) is at `x * K + y`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlooks {
    rankers: usize,
    margin: f64,
    /// `ln E(x≻y)`.
    evidence: Vec<f64>,
    /// Of "x beats y", or loses by less than the margin.
    outlooks: Vec<Outlook>,
    /// Probability that x beats y.
    above_half: Vec<f64>,
    /// Whether x won a larger share against y than the null.
    ahead: Vec<bool>,
    /// Of how many rankers each one is ahead.
    empirical_scores: Vec<usize>,
    /// Sides of pairs whose counts have changed since, each once.
    stale: Vec<(usize, usize)>,
    /// Whether "x beats y" is one of them.
    is_stale: Vec<bool>,
}

impl Outlooks {
    /// Of all pairs, for a verdict with this margin. O(K²).
    pub fn new(pairs: &PairEvidence, margin: f64) -> Self {
        let rankers = pairs.rankers();
        let count = rankers * rankers;
        let mut outlooks = Self {
            rankers,
            margin,
            evidence: vec![0.0; count],
            outlooks: vec![Outlook::default(); count],
            above_half: vec![0.5; count],
            ahead: vec![false; count],
            empirical_scores: vec![0; rankers],
            stale: Vec::new(),
            is_stale: vec![false; count],
        };
        for x in 1..rankers {
            for y in 0..x {
                outlooks.update(pairs, x, y);
            }
        }
        outlooks
    }

    /// Read the new counts of the pair of places `x` and `y`. O(1).
    pub fn update(&mut self, pairs: &PairEvidence, x: usize, y: usize) {
        self.update_side(pairs, (x, y));
        self.update_side(pairs, (y, x));
    }

    /// The same for what is known of "x beats y".
    pub fn update_side(&mut self, pairs: &PairEvidence, (x, y): (usize, usize)) {
        let (won, lost) = (pairs.wins(x, y), pairs.wins(y, x));
        let margin = self.margin;
        let at = x * self.rankers + y;
        // the only answer of a pair may have been left out
        self.evidence[at] = if won + lost > 0.0 { pairs.ln(x, y) } else { 0.0 };
        self.outlooks[at] = Outlook::of(won, lost, 0.5 - margin);
        self.above_half[at] = match margin > 0.0 {
            true => Outlook::of(won, lost, 0.5).probability,
            false => self.outlooks[at].probability,
        };
        let is_ahead = pairs.is_ahead(x, y, 0.5 - margin);
        let was_ahead = std::mem::replace(&mut self.ahead[at], is_ahead);
        let score = &mut self.empirical_scores[x];
        *score = *score + usize::from(is_ahead) - usize::from(was_ahead);
    }

    /// The pair of places `x` and `y` has new counts; the next [`catch_up`](Outlooks::catch_up)
    /// reads them for "x beats y".
    pub fn update_side_later(&mut self, (x, y): (usize, usize)) {
        if !std::mem::replace(&mut self.is_stale[x * self.rankers + y], true) {
            self.stale.push((x, y));
        }
    }

    /// Read the counts for all of [`update_side_later`](Outlooks::update_side_later).
    pub fn catch_up(&mut self, pairs: &PairEvidence) {
        for (x, y) in std::mem::take(&mut self.stale) {
            self.is_stale[x * self.rankers + y] = false;
            self.update_side(pairs, (x, y));
        }
    }

    /// For each ranker, the number of rankers against which it won a larger share than `1/2` less
    /// the margin.
    pub fn empirical_scores(&self) -> &[usize] {
        &self.empirical_scores
    }

    /// Number of rankers, `K`.
    pub(in crate::evidence) fn rankers(&self) -> usize {
        self.rankers
    }

    /// `ln E(x≻y)` of all pairs.
    pub fn evidence(&self) -> &[f64] {
        &self.evidence
    }

    /// The evidence of `pairs`, read from here where it is up to date.
    pub(in crate::evidence) fn read<'a>(&'a self, pairs: &'a PairEvidence<'a>) -> Read<'a> {
        Read { outlooks: self, pairs }
    }

    /// Probability that `x` beats each ranker, itself with 1/2.
    pub(in crate::evidence) fn above_half(&self, x: usize) -> &[f64] {
        &self.above_half[x * self.rankers..(x + 1) * self.rankers]
    }

    /// What comparisons of `x` and `y` promise for "x beats y".
    pub(in crate::evidence) fn outlook(&self, x: usize, y: usize) -> Outlook {
        self.outlooks[x * self.rankers + y]
    }

    /// Estimated number of comparisons that "x beats y" lacks to the evidence `target`.
    pub(in crate::evidence) fn missing(&self, x: usize, y: usize, target: f64) -> f64 {
        let at = x * self.rankers + y;
        (target - self.evidence[at]).max(0.0) / self.outlooks[at].rate
    }
}

/// See [`Outlooks::read`].
pub(in crate::evidence) struct Read<'a> {
    outlooks: &'a Outlooks,
    pairs: &'a PairEvidence<'a>,
}

impl Evidence for Read<'_> {
    fn wins(&self, x: usize, y: usize) -> f64 {
        self.pairs.wins(x, y)
    }

    fn ln(&self, x: usize, y: usize) -> f64 {
        let at = x * self.outlooks.rankers + y;
        match self.outlooks.is_stale[at] {
            true => self.pairs.ln(x, y),
            false => self.outlooks.evidence[at],
        }
    }
}
