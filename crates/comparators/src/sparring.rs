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
use dueling_bandits::parameters::require;
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
        // as in the experiments of later papers
        Self { alpha: 3.0 }
    }
}

impl Parameters for Sparring {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        let alpha = self.alpha;
        require(alpha.is_finite() && alpha >= 0.0, "alpha", alpha, "a finite number of at least 0")
    }

    fn start(&self, Setup { rankers, seed }: Setup) -> Box<dyn Bandit> {
        Box::new(Machines {
            alpha: self.alpha,
            seed,
            tally: Tally::new(rankers),
            left: Machine::new(rankers, seed, 0),
            right: Machine::new(rankers, seed, 1),
        })
    }
}

#[derive(Debug)]
struct Machines {
    alpha: f64,
    seed: u64,
    tally: Tally,
    left: Machine,
    right: Machine,
}

impl Bandit for Machines {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let pending = ucb::pending(in_flight, self.tally.rankers());
        Selection::of(
            self.left.advance(self.alpha, &pending),
            self.right.advance(self.alpha, &pending),
        )
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.tally.record(duel, observation.outcome);
        let (first, second) = observation.outcome.half_wins();
        if first + second > 0 {
            self.left.feedback(duel.first, 1, u64::from(first));
            self.right.feedback(duel.second, 1, u64::from(second));
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
        let mut best = (0, 0);
        for (arm, (l, r)) in self.left.plays().iter().zip(self.right.plays()).enumerate() {
            if l + r > best.1 {
                best = (arm, l + r);
            }
        }
        best.0
    }
}
