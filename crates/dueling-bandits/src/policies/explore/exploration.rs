//! The interface of an exploration.

use std::fmt::Debug;

use crate::saved_state::Serializable;
use crate::{Duel, InFlight, Observation, PolicyRng, Tally};

/// An algorithm that identifies the best ranker. `Self` holds its rules; its state is separate.
pub(super) trait Exploration: Debug + Send + Sync {
    /// The format of saved states. A change of what an exploration learns from the same outcomes
    /// needs a new one, so that the log is folded again.
    #[cfg(feature = "serde")]
    const FORMAT: u32 = 1;

    /// The state that follows from the log, in addition to the tally.
    type State: Debug + Clone + Send + Sync + Serializable + 'static;

    /// The state before the first observation.
    fn start(&self) -> Self::State;

    /// Check a decoded state and derive the fields that are not saved; `None` if it is invalid.
    fn resume(&self, state: Self::State) -> Option<Self::State>;

    /// The next comparison. Called only until a ranker is accepted.
    fn ask(&self, state: &Self::State, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel;

    /// Fold an observation that the tally already contains. Returns the ranker that this accepts,
    /// if any.
    fn learn(
        &self,
        state: &mut Self::State,
        tally: &Tally,
        observation: &Observation,
    ) -> Option<usize>;

    /// The best empirical ranker.
    fn guess(&self, state: &Self::State, tally: &Tally) -> usize;
}
