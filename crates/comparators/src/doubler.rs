//! Doubler: a bandit machine plays in epochs of doubling length, against the arms that it proposed
//! in the previous epoch (Ailon, Karnin, Joachims: "Reducing Dueling Bandits to Cardinal Bandits",
//! ICML 2014, Algorithm 1).
//!
//! Epoch `i = 1, 2, …` has `2^i` steps. In each step, the first ranker is drawn from the multiset
//! `ℒ` (initially one arbitrary ranker), and the machine proposes the second. The reward of the
//! second ranker is fed to the machine. After an epoch the machine is reset, and `ℒ` becomes the
//! multiset of its proposals in that epoch.
//!
//! - The ticket of a selection is its epoch. An epoch ends after `2^i` outcomes.
//! - An outcome of the previous epoch comes too late for the machine, which has been reset. Its
//!   second ranker still joins the `ℒ` of that epoch, from which the current epoch draws. Outcomes
//!   of older epochs, and tickets of future epochs, count in the tally only.
//! - An outcome without a ticket (0) was counted elsewhere or issued under another policy. It
//!   belongs to the epoch in which it is folded. So does a self-duel, which is a fair coin that is
//!   fed back and counted.
//! - A page without a click and a skipped tie change nothing and are not steps of the epoch.
//! - Duels in flight narrow the machine's radius, in proportion to the probability that each ranker
//!   of the pair was the second.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::coin;
use crate::parameters::Parameters;
use crate::ucb::{self, Machine};
use dueling_bandits::{
    Bandit, Duel, InFlight, InvalidPolicy, Observation, PolicyRng, Selection, Setup, Tally,
    step_rng,
};

/// No experiment reaches the end of this epoch.
const LAST_EPOCH: u64 = 52;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubler {
    /// Robustness of the machine's index.
    pub alpha: f64,
}

impl Default for Doubler {
    fn default() -> Self {
        Self { alpha: ucb::DEFAULT_ALPHA }
    }
}

impl Parameters for Doubler {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        ucb::validate_alpha(self.alpha)
    }

    fn start(&self, Setup { rankers: k, seed }: Setup) -> Box<dyn Bandit> {
        let mut pool = vec![0; k];
        pool[step_rng(seed, 0).random_range(0..k)] = 1;
        Box::new(DoublingMachine {
            alpha: self.alpha,
            seed,
            order: ucb::order(k, seed, 1),
            tally: Tally::new(k),
            epoch: 1,
            machine: Machine::new(k),
            pool,
        })
    }
}

#[derive(Debug)]
struct DoublingMachine {
    alpha: f64,
    seed: u64,
    /// The machine's order of arms in this epoch.
    order: Vec<u16>,
    tally: Tally,
    /// `i`.
    epoch: u64,
    /// `S`; its plays are the multiset of its proposals in this epoch.
    machine: Machine,
    /// `ℒ`, as one count per ranker.
    pool: Vec<u64>,
}

impl DoublingMachine {
    /// Fold `count` steps of this epoch, at most as many as it has left.
    fn feedback(&mut self, second: usize, count: u64, half_rewards: u64) {
        self.machine.feedback(second, count, half_rewards);
        if self.left() == 0 && self.epoch < LAST_EPOCH {
            let fresh = Machine::new(self.pool.len());
            let over = std::mem::replace(&mut self.machine, fresh);
            self.pool = over.plays().to_vec();
            self.epoch += 1;
            self.order = ucb::order(self.pool.len(), self.seed, self.epoch);
        }
    }

    /// Number of outcomes that this epoch still needs.
    fn left(&self) -> u64 {
        (1 << self.epoch) - self.machine.total_plays()
    }
}

impl Bandit for DoublingMachine {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let pool = &self.pool;
        let mut drawn = rng.random_range(0..pool.iter().sum());
        let mut first = 0;
        while drawn >= pool[first] {
            drawn -= pool[first];
            first += 1;
        }
        // i is the second of a pair if j was drawn from the pool
        let is_second = |i: usize, j: usize| match pool[i] + pool[j] {
            0 => 0.5,
            both => pool[j] as f64 / both as f64,
        };
        let pending = ucb::pending(in_flight, pool.len(), is_second);
        let second = self.machine.advance(self.alpha, &self.order, &pending);
        Selection { duel: Duel::new(first, second), batch: None, ticket: self.epoch }
    }

    fn observe(&mut self, observation: &Observation) {
        let second = observation.duel.second;
        self.tally.record(observation.duel, observation.outcome);
        let Some(reward) = ucb::second_reward(observation.outcome) else { return };
        match observation.ticket {
            0 => self.feedback(second, 1, reward),
            epoch if epoch == self.epoch => self.feedback(second, 1, reward),
            epoch if epoch == self.epoch - 1 => self.pool[second] += 1,
            _ => {}
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        let mut unfolded = count;
        while unfolded > 0 {
            let here = unfolded.min(self.left().max(1));
            let heads = coin::heads(self.seed, self.tally.steps(), here);
            self.tally.skip(here);
            self.feedback(ranker, here, 2 * heads);
            unfolded -= here;
        }
    }

    /// The ranker that the machine played most often in the previous epoch.
    fn champion(&self) -> usize {
        ucb::most(self.pool.iter().copied())
    }
}
