//! MultiSBM: one bandit machine per ranker, for the duels in which that ranker is first (Ailon,
//! Karnin, Joachims: "Reducing Dueling Bandits to Cardinal Bandits", ICML 2014, Algorithm 2).
//!
//! Let `x` be the second ranker of the previous duel (uniform at the start). Select
//! `(x, S_x.advance)`; fold the second ranker's reward into `S_x`, and make that ranker the next
//! `x`. Each machine has its own timer.
//!
//! - A self-duel is a fair coin that is fed back and counted; otherwise the machine of the best
//!   ranker would never advance.
//! - All requests between two folds share the same `x`. The pairs in flight spread these requests
//!   over the opponents of `x`.
//! - A late outcome is fed to the machine of its first ranker, no matter when it arrives, and its
//!   second ranker becomes the next `x`.
//! - A page without a click and a skipped tie change nothing: the same duel is issued again.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::coin;
use crate::parameters::Parameters;
use crate::ucb::{self, Machine, PerRanker};
use dueling_bandits::{
    Bandit, InFlight, InvalidPolicy, Observation, PolicyRng, Selection, Setup, Tally, step_rng,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MultiSbm {
    /// Robustness of the machines' indices; the theorem wants `max(3, ln K / ln ln T)`.
    pub alpha: f64,
}

impl Default for MultiSbm {
    fn default() -> Self {
        Self { alpha: ucb::DEFAULT_ALPHA }
    }
}

impl Parameters for MultiSbm {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        ucb::validate_alpha(self.alpha)
    }

    fn start(&self, Setup { rankers: k, seed }: Setup) -> Box<dyn Bandit> {
        Box::new(Machines {
            alpha: self.alpha,
            seed,
            orders: (0..k as u64).map(|x| ucb::order(k, seed, x)).collect(),
            tally: Tally::new(k),
            machines: vec![Machine::new(k); k],
            first: step_rng(seed, 0).random_range(0..k),
        })
    }
}

#[derive(Debug)]
struct Machines {
    alpha: f64,
    seed: u64,
    /// The order of arms of each machine.
    orders: Vec<Vec<u16>>,
    tally: Tally,
    /// `S_x`.
    machines: Vec<Machine>,
    /// `x`.
    first: usize,
}

impl Bandit for Machines {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let first = self.first;
        let pending: PerRanker =
            (0..self.orders.len()).map(|second| f64::from(in_flight.of(first, second))).collect();
        let second = self.machines[first].advance(self.alpha, &self.orders[first], &pending);
        Selection::of(first, second)
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.tally.record(duel, observation.outcome);
        if let Some(reward) = ucb::second_reward(observation.outcome) {
            self.machines[duel.first].feedback(duel.second, 1, reward);
            self.first = duel.second;
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        if count == 0 {
            return;
        }
        let heads = coin::heads(self.seed, self.tally.steps(), count);
        self.tally.skip(count);
        self.machines[ranker].feedback(ranker, count, 2 * heads);
        self.first = ranker;
    }

    /// The ranker that the machines have proposed most often.
    fn champion(&self) -> usize {
        let proposed = |ranker| self.machines.iter().map(|machine| machine.plays()[ranker]).sum();
        ucb::most((0..self.orders.len()).map(proposed))
    }
}
