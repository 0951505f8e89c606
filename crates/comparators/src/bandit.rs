//! The contract of a policy in a simulation, and that of a comparator's parameters.

use std::fmt::Debug;

use dueling_bandits::evidence::Verdict;
use dueling_bandits::run::Run;
use dueling_bandits::{
    InFlight, InvalidPolicy, Observation, Policy, PolicyRng, Selection, Setup, Tally,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A policy in a simulation. The methods are those of [`Policy`] with the same names.
pub trait Bandit: Send + Sync + Debug {
    /// The win counts and the number of steps folded so far.
    fn tally(&self) -> &Tally;

    /// Choose the next duel. `in_flight` counts the selected duels that have no outcome yet.
    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection;

    /// Fold one answered duel. Deterministic.
    fn observe(&mut self, observation: &Observation);

    /// Fold `count` self-duels of `ranker`: `count` steps without a comparison.
    fn observe_self_duels(&mut self, ranker: usize, count: u64);

    /// The ranker to recommend now.
    fn champion(&self) -> usize {
        self.tally().copeland_leader()
    }

    /// The run of the served policy behind this one; `None` for a comparator.
    fn served(&self) -> Option<&Run> {
        None
    }

    /// The verdict; `None` before there is one, and for a comparator.
    fn verdict(&self) -> Option<&Verdict> {
        self.served()?.verdict().verdict()
    }
}

/// A served policy, with the verdict on its answers.
impl Bandit for Run {
    fn tally(&self) -> &Tally {
        Policy::tally(self)
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        Policy::select(self, in_flight, rng)
    }

    fn observe(&mut self, observation: &Observation) {
        Policy::observe(self, observation);
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        Policy::observe_self_duels(self, ranker, count);
    }

    fn champion(&self) -> usize {
        Policy::champion(self)
    }

    fn served(&self) -> Option<&Run> {
        Some(self)
    }
}

/// The parameters of a comparator. Their names are those of the fields, and the default of a
/// parameter is that of its field. A horizon that has no default is 0, which is never valid.
pub trait Parameters: Default + Serialize + DeserializeOwned {
    /// Check the ranges of the parameters for `rankers` rankers.
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        Ok(())
    }

    /// The policy before its first observation. Call [`Parameters::validate`] first.
    fn start(&self, setup: Setup) -> Box<dyn Bandit>;
}
