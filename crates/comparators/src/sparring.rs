//! Sparring: two bandit machines that play against each other (Ailon, Karnin, Joachims: "Reducing
//! Dueling Bandits to Cardinal Bandits", ICML 2014, Algorithm 3).
//!
//! Select `(L.advance, R.advance)`; fold the left arm's reward into `L` and the right arm's into
//! `R`. The algorithm has no proof. It is the best of the paper's three algorithms in the paper's
//! experiments and in later ones.
//!
//! - A self-duel is a fair coin between the two machines. It is fed back and counted like any duel;
//!   otherwise two machines that propose the same arm would never change.
//! - A late outcome is fed to the machines that proposed its arms, no matter when it arrives.
//! - A duel in flight counts half for each machine, because pairs in flight are unordered.

use serde::{Deserialize, Serialize};

use crate::coin;
use crate::parameters::Parameters;
use crate::ucb::{self, Machine};
use dueling_bandits::{
    Bandit, InFlight, InvalidPolicy, Observation, PolicyRng, Selection, Setup, Tally,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sparring {
    /// Robustness of the machines' indices.
    pub alpha: f64,
}

impl Default for Sparring {
    fn default() -> Self {
        Self { alpha: ucb::DEFAULT_ALPHA }
    }
}

impl Parameters for Sparring {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        ucb::validate_alpha(self.alpha)
    }

    fn start(&self, Setup { rankers, seed }: Setup) -> Box<dyn Bandit> {
        Box::new(Machines {
            alpha: self.alpha,
            seed,
            left_order: ucb::order(rankers, seed, 0),
            right_order: ucb::order(rankers, seed, 1),
            tally: Tally::new(rankers),
            left: Machine::new(rankers),
            right: Machine::new(rankers),
        })
    }
}

#[derive(Debug)]
struct Machines {
    alpha: f64,
    seed: u64,
    left_order: Vec<u16>,
    right_order: Vec<u16>,
    tally: Tally,
    left: Machine,
    right: Machine,
}

impl Bandit for Machines {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let pending = ucb::pending(in_flight, self.tally.rankers(), |_, _| 0.5);
        Selection::of(
            self.left.advance(self.alpha, &self.left_order, &pending),
            self.right.advance(self.alpha, &self.right_order, &pending),
        )
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.tally.record(duel, observation.outcome);
        if let Some(reward) = ucb::second_reward(observation.outcome) {
            self.left.feedback(duel.first, 1, 2 - reward);
            self.right.feedback(duel.second, 1, reward);
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        let heads = coin::heads(self.seed, self.tally.steps(), count);
        self.tally.skip(count);
        self.left.feedback(ranker, count, 2 * (count - heads));
        self.right.feedback(ranker, count, 2 * heads);
    }

    /// The ranker that the two machines have played most often.
    fn champion(&self) -> usize {
        ucb::most(self.left.plays().iter().zip(self.right.plays()).map(|(l, r)| l + r))
    }
}
