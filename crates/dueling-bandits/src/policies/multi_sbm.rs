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

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::{
    coin,
    ucb::{self, Machine, PerRanker},
};
#[cfg(feature = "serde")]
use crate::saved_state::{SaveLater, load_state, save_later};
use crate::{InFlight, Observation, Policy, PolicyRng, Selection, Tally, step_rng};

const FORMAT: u32 = 1;

/// Parameters of MultiSBM.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct MultiSbm {
    /// Robustness of the machines' indices; the theorem wants `max(3, ln K / ln ln T)`.
    pub alpha: f64,
}

impl Default for MultiSbm {
    fn default() -> Self {
        Self { alpha: ucb::DEFAULT_ALPHA }
    }
}

impl PolicyParameters for MultiSbm {
    const DESCRIPTION: Description = Description {
        summary: "One UCB bandit per ranker: the second ranker of one duel is the first of the \
                  next, and its bandit proposes the opponent.",
        source: "Ailon, Karnin, Joachims, Reducing Dueling Bandits to Cardinal Bandits (ICML 2014), Algorithm 2",
        assumes: "every ranker has a utility, and win probabilities are linear in utilities",
        parameters: &[ucb::ALPHA],
        fixed_rankers: Some("it has one bandit for each initial ranker"),
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        ucb::validate_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let k = setup.rankers;
        let state = State {
            tally: Tally::new(k),
            machines: vec![Machine::new(k); k],
            first: step_rng(setup.seed, 0).random_range(0..k) as u16,
        };
        Box::new(Machines::new(self.alpha, setup, state))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let state: State = load_state(state)?;
        let k = setup.rankers;
        let sound = state.tally.rankers() == k
            && state.machines.len() == k
            && state.machines.iter().all(|machine| machine.is_sound(k))
            && usize::from(state.first) < k;
        sound.then(|| -> Box<dyn Policy> { Box::new(Machines::new(self.alpha, setup, state)) })
    }
}

#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct State {
    tally: Tally,
    /// `S_x`.
    machines: Vec<Machine>,
    /// `x`.
    first: u16,
}

#[derive(Debug)]
struct Machines {
    alpha: f64,
    seed: u64,
    /// The order of arms of each machine.
    orders: Vec<Vec<u16>>,
    state: State,
}

impl Machines {
    fn new(alpha: f64, setup: Setup, state: State) -> Self {
        let orders =
            (0..setup.rankers as u64).map(|x| ucb::order(setup.rankers, setup.seed, x)).collect();
        Self { alpha, seed: setup.seed, orders, state }
    }
}

impl Policy for Machines {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let first = usize::from(self.state.first);
        let pending: PerRanker =
            (0..self.orders.len()).map(|second| f64::from(in_flight.of(first, second))).collect();
        let second = self.state.machines[first].advance(self.alpha, &self.orders[first], &pending);
        Selection::of(first, second)
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.state.tally.record(duel, observation.outcome);
        if let Some(reward) = ucb::second_reward(observation.outcome) {
            self.state.machines[duel.first].feedback(duel.second, 1, reward);
            self.state.first = duel.second as u16;
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        if count == 0 {
            return;
        }
        let heads = coin::heads(self.seed, self.state.tally.steps(), count);
        self.state.tally.skip(count);
        self.state.machines[ranker].feedback(ranker, count, 2 * heads);
        self.state.first = ranker as u16;
    }

    /// The ranker that the machines have proposed most often.
    fn champion(&self) -> usize {
        let proposed =
            |ranker| self.state.machines.iter().map(|machine| machine.plays()[ranker]).sum();
        ucb::most((0..self.orders.len()).map(proposed))
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
