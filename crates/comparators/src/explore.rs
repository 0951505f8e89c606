//! Explore, then exploit: policies that first identify the best ranker and then show it alone
//! (`lab/notes/comparators.md` §11.3).

use dueling_bandits::policies::explore::{Exploration, ExploreThenExploit};
use dueling_bandits::{InFlight, Observation, PolicyRng, Selection, Tally};

use crate::bandit::Bandit;

impl<E: Exploration> Bandit for ExploreThenExploit<E> {
    fn tally(&self) -> &Tally {
        Self::tally(self)
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        Self::select(self, in_flight, rng)
    }

    fn observe(&mut self, observation: &Observation) {
        Self::observe(self, observation);
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        Self::observe_self_duels(self, count);
    }

    fn champion(&self) -> usize {
        Self::champion(self)
    }
}
