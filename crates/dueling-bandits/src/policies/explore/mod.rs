//! Explore, then exploit: policies that first identify the best ranker and then show it alone.
//!
//! The wrapper that makes a regret policy of an exploration is from Urvoy et al. (ICML 2013),
//! `Explore-then-exploit` (`algorithms-comparators.md` §11.4), and is the same for all of them:
//! explore with `δ = 1/T`; once the exploration accepts a ranker, show it alone for ever; when the
//! horizon `T` comes first, show the best empirical one.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::parameters::{InvalidPolicy, Parameter, Setup, Values, require};
use crate::saved_state::load_state;
use crate::saved_state::save_state;
use crate::{Duel, InFlight, Observation, Outcome, Policy, PolicyRng, Selection, Tally};

mod borda;
mod confidence;
mod pairs;
pub mod pbr;
pub mod rank_el;
mod round_robin;
mod sampled;
pub mod savage;

use confidence::{Intervals, Radius};
use pairs::Pairs;
use round_robin::RoundRobin;

const FORMAT: u32 = 1;

/// Most steps of a horizon: the counts of one pair are exact up to here.
pub const MAX_HORIZON: u64 = 2_000_000_000;

const HORIZON: Parameter = Parameter {
    name: "horizon",
    values: Values::Integer,
    meaning: "T: steps after which the best empirical ranker is shown alone if none was accepted before, from the \
              number of rankers to 2 000 000 000; without it exploring goes on until one is accepted",
    default: Some("none"),
};
const DELTA: Parameter = Parameter {
    name: "delta",
    values: Values::Number,
    meaning: "probability of accepting a wrong ranker, above 0 and below 1",
    default: Some("1 / horizon, and 0.05 without a horizon"),
};

/// How long to explore, and how surely.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// `T`.
    horizon: Option<u64>,
    delta: Option<f64>,
}

impl Terms {
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        if let Some(horizon) = self.horizon {
            let least = rankers as u64;
            let wanted = format!("from {least}, the number of rankers, to {MAX_HORIZON}");
            require((least..=MAX_HORIZON).contains(&horizon), "horizon", horizon, &wanted)?;
        }
        let delta = self.delta();
        require(delta > 0.0 && delta < 1.0, "delta", delta, "a probability above 0 and below 1")
    }

    /// `δ`.
    fn delta(&self) -> f64 {
        self.delta.unwrap_or(match self.horizon {
            Some(horizon) => 1.0 / horizon as f64,
            None => 0.05,
        })
    }

    /// SAVAGE's `c(t)` for `parameters` unknowns.
    fn radius(&self, parameters: usize) -> Radius {
        match self.horizon {
            Some(horizon) => Radius::finite(parameters, horizon, self.delta()),
            None => Radius::anytime(parameters, self.delta()),
        }
    }
}

/// An algorithm that identifies the best ranker: its rules here, its state apart.
trait Exploration: std::fmt::Debug + Send + Sync {
    /// What the log decides, beside the tally.
    type State: std::fmt::Debug + Send + Sync + Serialize + DeserializeOwned;

    /// The state before the first observation.
    fn start(&self) -> Self::State;

    /// After reading a state: check it and derive what was not saved. `None` when it cannot be one.
    fn resume(&self, state: Self::State) -> Option<Self::State>;

    /// The next comparison. Asked only while no ranker was accepted.
    fn ask(&self, state: &Self::State, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel;

    /// Fold an observation that the tally holds already; the ranker that is accepted now, if one
    /// is.
    fn learn(
        &self,
        state: &mut Self::State,
        tally: &Tally,
        observation: &Observation,
    ) -> Option<usize>;

    /// The best empirical ranker.
    fn guess(&self, state: &Self::State, tally: &Tally) -> usize;
}

/// What is saved.
#[derive(Debug, Serialize, Deserialize)]
struct State<S> {
    tally: Tally,
    exploration: S,
    /// The ranker that is shown alone, once exploring is over.
    settled: Option<usize>,
}

/// A running policy around one exploration.
#[derive(Debug)]
struct ExploreThenExploit<E: Exploration> {
    exploration: E,
    horizon: Option<u64>,
    state: State<E::State>,
}

impl<E: Exploration + 'static> ExploreThenExploit<E> {
    fn start(exploration: E, terms: Terms, setup: Setup) -> Box<dyn Policy> {
        let state = State {
            tally: Tally::new(setup.rankers),
            exploration: exploration.start(),
            settled: None,
        };
        Box::new(Self { exploration, horizon: terms.horizon, state })
    }

    fn restore(
        exploration: E,
        terms: Terms,
        setup: Setup,
        format: u32,
        bytes: &[u8],
    ) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let State { tally, exploration: state, settled } = load_state(bytes)?;
        let sound =
            tally.rankers() == setup.rankers && settled.is_none_or(|ranker| ranker < setup.rankers);
        sound.then_some(())?;
        let state = State { tally, exploration: exploration.resume(state)?, settled };
        Some(Box::new(Self { exploration, horizon: terms.horizon, state }))
    }

    fn settle_at_the_horizon(&mut self) {
        let State { tally, exploration, settled } = &mut self.state;
        if settled.is_none() && self.horizon.is_some_and(|horizon| tally.steps() >= horizon) {
            *settled = Some(self.exploration.guess(exploration, tally));
        }
    }
}

impl<E: Exploration + 'static> Policy for ExploreThenExploit<E> {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let duel = match self.state.settled {
            Some(ranker) => Duel::new(ranker, ranker),
            None => self.exploration.ask(&self.state.exploration, in_flight, rng),
        };
        Selection { duel, batch: None, ticket: 0 }
    }

    fn observe(&mut self, observation: &Observation) {
        let State { tally, exploration, settled } = &mut self.state;
        tally.record(observation.duel, observation.outcome);
        if settled.is_none() && observation.outcome != Outcome::None {
            *settled = self.exploration.learn(exploration, tally, observation);
        }
        self.settle_at_the_horizon();
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.state.tally.skip(count);
        self.settle_at_the_horizon();
    }

    fn champion(&self) -> usize {
        let State { tally, exploration, settled } = &self.state;
        settled.unwrap_or_else(|| self.exploration.guess(exploration, tally))
    }

    fn format(&self) -> u32 {
        FORMAT
    }

    fn save(&self) -> Vec<u8> {
        save_state(&self.state)
    }
}

/// The largest of at least two values, and the largest of the others: what a value compares with
/// beside itself.
#[derive(Debug, Clone, Copy)]
struct LargestOther {
    at: usize,
    largest: f64,
    next: f64,
}

impl LargestOther {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self { at: 0, largest: f64::NEG_INFINITY, next: f64::NEG_INFINITY };
        values.enumerate().fold(none, |best, (at, value)| {
            if value > best.largest {
                Self { at, largest: value, next: best.largest }
            } else {
                Self { next: best.next.max(value), ..best }
            }
        })
    }

    /// The largest value but that at `i`.
    fn than(&self, i: usize) -> f64 {
        if i == self.at { self.next } else { self.largest }
    }
}
