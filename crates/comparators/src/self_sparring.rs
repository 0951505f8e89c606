//! Self-Sparring (Sui, Zhuang, Burdick, Yue: "Multi-dueling Bandits with Dependent Arms", UAI 2017,
//! with independent arms and duels of two): one Beta posterior per ranker, and no pairwise
//! statistics.
//!
//! Select: draw two independent samples of all posteriors. The first ranker has the largest value
//! of the first sample, and the second ranker that of the second. Fold: add one win for the winner
//! and one loss for the loser.
//!
//! - A half win counts half for both rankers. A page without a click and a skipped tie change
//!   nothing.
//! - A self-duel changes nothing.
//! - Late outcomes count no matter when they arrive. Duels in flight are ignored, because the
//!   samples already spread requests.

use rand::distr::Distribution;
use rand_distr::Beta;
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::{Bandit, InFlight, Observation, PolicyRng, Selection, Setup, Tally};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfSparring {}

impl Parameters for SelfSparring {
    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        let records = vec![(0, 0); setup.rankers];
        Box::new(Posteriors { tally: Tally::new(setup.rankers), records })
    }
}

#[derive(Debug)]
struct Posteriors {
    tally: Tally,
    /// Half wins and half losses of each ranker against all others.
    records: Vec<(u64, u64)>,
}

impl Posteriors {
    /// The ranker with the largest value in one sample of `Beta(a_i, b_i)`.
    fn sampled_best(&self, rng: &mut PolicyRng) -> usize {
        let mut best = (0, f64::NEG_INFINITY);
        for (ranker, &(won, lost)) in self.records.iter().enumerate() {
            let (a, b) = (1.0 + won as f64 / 2.0, 1.0 + lost as f64 / 2.0);
            // both parameters are at least 1, so the distribution exists
            let sample = Beta::new(a, b).map_or(a / (a + b), |beta| beta.sample(rng));
            if sample > best.1 {
                best = (ranker, sample);
            }
        }
        best.0
    }
}

impl Bandit for Posteriors {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, _in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        Selection::of(self.sampled_best(rng), self.sampled_best(rng))
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.tally.record(duel, observation.outcome);
        let (first, second) = observation.outcome.half_wins();
        let (first, second) = (u64::from(first), u64::from(second));
        for (ranker, won, lost) in [(duel.first, first, second), (duel.second, second, first)] {
            self.records[ranker].0 += won;
            self.records[ranker].1 += lost;
        }
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }

    /// The largest posterior mean `a/(a+b)`; the first one on a tie.
    fn champion(&self) -> usize {
        let mut best = 0;
        for ranker in 1..self.records.len() {
            // (2 + w) / (4 + w + l) on halves, compared as integers
            let mean = |i: usize| {
                let (won, lost) = self.records[i];
                (u128::from(won) + 2, u128::from(won) + u128::from(lost) + 4)
            };
            let ((a, n), (best_a, best_n)) = (mean(ranker), mean(best));
            if a * best_n > best_a * n {
                best = ranker;
            }
        }
        best
    }
}
