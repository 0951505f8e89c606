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

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::{
    coin,
    ucb::{self, Machine},
};
#[cfg(feature = "serde")]
use crate::saved_state::{SaveLater, load_state, save_later};
use crate::{InFlight, Observation, Policy, PolicyRng, Selection, Tally};

const FORMAT: u32 = 1;

/// Parameters of Sparring.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct Sparring {
    /// Robustness of the machines' indices.
    pub alpha: f64,
}

impl Default for Sparring {
    fn default() -> Self {
        Self { alpha: ucb::DEFAULT_ALPHA }
    }
}

impl PolicyParameters for Sparring {
    const DESCRIPTION: Description = Description {
        summary: "Two UCB bandits, one for each side of the page; a bandit is rewarded when its \
                  ranker wins.",
        source: "Ailon, Karnin, Joachims, Reducing Dueling Bandits to Cardinal Bandits (ICML 2014), Algorithm 3",
        assumes: "every ranker has a utility; a heuristic without a proof",
        parameters: &[ucb::ALPHA],
        fixed_rankers: Some("its two bandits choose among the initial rankers"),
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        ucb::validate_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let machine = Machine::new(setup.rankers);
        let state =
            State { tally: Tally::new(setup.rankers), left: machine.clone(), right: machine };
        Box::new(SparringMachines::new(self.alpha, setup, state))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let state: State = load_state(state)?;
        let k = setup.rankers;
        let sound = state.tally.rankers() == k && state.left.is_sound(k) && state.right.is_sound(k);
        sound.then(|| -> Box<dyn Policy> {
            Box::new(SparringMachines::new(self.alpha, setup, state))
        })
    }
}

#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct State {
    tally: Tally,
    left: Machine,
    right: Machine,
}

#[derive(Debug)]
struct SparringMachines {
    alpha: f64,
    seed: u64,
    left_order: Vec<u16>,
    right_order: Vec<u16>,
    state: State,
}

impl SparringMachines {
    fn new(alpha: f64, setup: Setup, state: State) -> Self {
        let order = |machine| ucb::order(setup.rankers, setup.seed, machine);
        Self { alpha, seed: setup.seed, left_order: order(0), right_order: order(1), state }
    }
}

impl Policy for SparringMachines {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let pending = ucb::pending(in_flight, self.state.tally.rankers(), |_, _| 0.5);
        Selection::of(
            self.state.left.advance(self.alpha, &self.left_order, &pending),
            self.state.right.advance(self.alpha, &self.right_order, &pending),
        )
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.state.tally.record(duel, observation.outcome);
        if let Some(reward) = ucb::second_reward(observation.outcome) {
            self.state.left.feedback(duel.first, 1, 2 - reward);
            self.state.right.feedback(duel.second, 1, reward);
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        let heads = coin::heads(self.seed, self.state.tally.steps(), count);
        self.state.tally.skip(count);
        self.state.left.feedback(ranker, count, 2 * (count - heads));
        self.state.right.feedback(ranker, count, 2 * heads);
    }

    /// The ranker that the two machines have played most often.
    fn champion(&self) -> usize {
        ucb::most(self.state.left.plays().iter().zip(self.state.right.plays()).map(|(l, r)| l + r))
    }

    #[cfg(feature = "serde")]
    fn format(&self) -> u32 {
        FORMAT
    }

    #[cfg(feature = "serde")]
    fn save_later(&self) -> SaveLater {
        save_later(self.state.clone())
    }
}
