//! The record of each ranker: how often it won against all others together.
//!
//! D-TS+ knows a ranker by its pairs, and with many rankers it takes long until every pair was met
//! often enough. Preferences of real rankers are nearly those of a total order: a ranker that wins
//! much against some wins against most. So the records find the best rankers sooner. This is
//! Self-Sparring (Sui, Zhuang, Burdick and Yue, UAI 2017): sample a win rate for each ranker, take
//! the largest, and do so again for the other side of the duel.
//!
//! Where preferences are no order, records mislead. [`Records::agreement`] finds out from the pairs
//! with a clear majority, and the policy uses the records less, or not at all.

use rand_distr::{Distribution, StandardNormal};

use crate::{Outcome, PolicyRng, Tally};

/// A majority is clear if the lead of wins, squared, is so many times the comparisons.
const CLEAR: f64 = 2.7;
/// So many pairs count as if they agreed, before any has a clear majority.
const AGREEING_AT_FIRST: f64 = 3.0;

/// The records of all rankers against the active ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Records(Vec<Record>);

#[derive(Debug, Clone, Copy)]
struct Record {
    won: f64,
    lost: f64,
    /// Mean and standard deviation of `Beta(won + 1, lost + 1)`. They follow from the counts.
    mean: f64,
    deviation: f64,
}

impl Record {
    fn new(won: f64, lost: f64) -> Self {
        let count = won + lost + 2.0;
        let mean = (won + 1.0) / count;
        let deviation = (mean * (1.0 - mean) / (count + 1.0)).sqrt();
        Self { won, lost, mean, deviation }
    }
}

impl Records {
    pub fn new(tally: &Tally, active: &[usize]) -> Self {
        let mut records = vec![Record::new(0.0, 0.0); tally.rankers()];
        for &i in active {
            let wins = |x: usize, y: usize| if x == y { 0.0 } else { tally.wins(x, y) };
            let won = active.iter().map(|&j| wins(i, j)).sum();
            let lost = active.iter().map(|&j| wins(j, i)).sum();
            records[i] = Record::new(won, lost);
        }
        Self(records)
    }

    /// Count an outcome of two active rankers.
    pub fn observe(&mut self, i: usize, j: usize, outcome: Outcome) {
        let (first, second) = outcome.half_wins();
        let (first, second) = (f64::from(first) / 2.0, f64::from(second) / 2.0);
        for (ranker, won, lost) in [(i, first, second), (j, second, first)] {
            let record = &mut self.0[ranker];
            *record = Record::new(record.won + won, record.lost + lost);
        }
    }

    /// The ranker with the largest of one sample of win rates. A normal distribution stands for
    /// the beta distribution, because the policy samples for every page.
    pub fn sampled_best(&self, active: &[usize], rng: &mut PolicyRng) -> usize {
        let mut best = (active[0], f64::NEG_INFINITY);
        for &i in active {
            let Record { mean, deviation, .. } = self.0[i];
            let normal: f64 = StandardNormal.sample(rng);
            let rate = mean + deviation * normal;
            if rate > best.1 {
                best = (i, rate);
            }
        }
        best.0
    }

    /// The share of the pairs with a clear majority in which the ranker with the better record is
    /// ahead. O(K²).
    pub fn agreement(&self, tally: &Tally, active: &[usize]) -> f64 {
        let (mut agreeing, mut all) = (AGREEING_AT_FIRST, AGREEING_AT_FIRST);
        for (at, &i) in active.iter().enumerate() {
            for &j in &active[..at] {
                let (won, lost) = (tally.wins(i, j), tally.wins(j, i));
                let lead = won - lost;
                if lead != 0.0 && lead * lead >= CLEAR * (won + lost) {
                    all += 1.0;
                    let (winner, loser) = if lead > 0.0 { (i, j) } else { (j, i) };
                    let agrees = self.0[winner].mean > self.0[loser].mean;
                    agreeing += f64::from(u8::from(agrees));
                }
            }
        }
        agreeing / all
    }
}
