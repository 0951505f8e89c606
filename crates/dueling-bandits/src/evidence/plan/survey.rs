//! What a proof costs: the price of each claim, and who can be proven.

use crate::evidence::certificate::{PairEvidence, largest};
use crate::evidence::outlooks::Outlooks;
use crate::evidence::verdict::Target;

/// How much more a comparison counts for each unit of regret that it costs.
const REGRET_WEIGHT: f64 = 10.0;
/// Without a margin, rankers whose expected Copeland score is this close to the largest are
/// candidates.
const CANDIDATES_WITHIN: f64 = 0.5;

/// All pairs at one moment. Rankers are places in the list of active ones.
pub(super) struct Survey<'a> {
    pub(super) outlooks: &'a Outlooks,
    /// Expected Copeland scores, and the largest of them.
    scores: Vec<f64>,
    highest: f64,
    /// The largest empirical Copeland score, where an even pair has a fixed side.
    pub(super) best: usize,
    /// The rankers that a proof may be for.
    pub(super) candidates: Vec<usize>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(outlooks: &'a Outlooks, pairs: &PairEvidence, target: Target) -> Self {
        let rankers = outlooks.rankers();
        let scores: Vec<f64> =
            (0..rankers).map(|x| outlooks.above_half(x).iter().sum::<f64>() - 0.5).collect();
        let highest = scores.iter().copied().fold(0.0, f64::max);
        // an even pair needs some side; which one does not matter
        let is_won = |x: usize, y: usize| {
            let (won, lost) = (pairs.wins(x, y), pairs.wins(y, x));
            won > lost || won == lost && (x + y).is_multiple_of(2) == (x > y)
        };
        let mut wins = vec![0; rankers];
        for x in 1..rankers {
            (0..x).for_each(|y| wins[if is_won(x, y) { x } else { y }] += 1);
        }
        let best = wins.into_iter().max().unwrap_or(0);
        let near_highest = |&a: &usize| scores[a] >= highest - CANDIDATES_WITHIN;
        let candidates = match target.margin > 0.0 {
            // pairs within the margin can make another ranker the only one that is checked
            true => largest(outlooks.empirical_scores()),
            false => (0..rankers).filter(near_highest).collect(),
        };
        Self { outlooks, scores, highest, best, candidates }
    }

    pub(super) fn rankers(&self) -> usize {
        self.outlooks.rankers()
    }

    /// Expected Copeland regret of a duel.
    pub(super) fn regret(&self, x: usize, y: usize) -> f64 {
        let mean = (self.scores[x] + self.scores[y]) / 2.0;
        (self.highest - mean).max(0.0) / (self.rankers() - 1) as f64
    }

    /// The price of a claim with evidence `target`: the comparisons that it lacks, and more where
    /// they show bad rankers.
    pub(super) fn price(&self, x: usize, y: usize, target: f64) -> f64 {
        self.outlooks.missing(x, y, target) * (1.0 + REGRET_WEIGHT * self.regret(x, y))
    }

    /// The price of so much more evidence for "x beats y".
    pub(super) fn price_of_nats(&self, x: usize, y: usize, nats: f64) -> f64 {
        nats / self.outlooks.outlook(x, y).rate * (1.0 + REGRET_WEIGHT * self.regret(x, y))
    }

    /// Whether the claim "x beats y" has the evidence `target`.
    pub(super) fn has(&self, x: usize, y: usize, target: f64) -> bool {
        self.outlooks.missing(x, y, target) <= 0.0
    }
}
