//! What an exploration decides.

use std::fmt::Debug;

use crate::saved_state::Serializable;
use crate::{Duel, InFlight, Observation, PolicyRng, Tally};

/// An algorithm that identifies the best ranker: its rules here, its state apart.
pub(super) trait Exploration: Debug + Send + Sync {
    /// What the log decides, beside the tally.
    type State: Debug + Send + Sync + Serializable;

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
