//! Explore, then exploit: policies that first identify the best ranker and then show it alone
//! (`lab/notes/comparators.md` §11.3).

use std::fmt::Debug;

use dueling_bandits::{Duel, InFlight, Observation, Outcome, PolicyRng, Selection, Tally};

use crate::bandit::Bandit;

/// An algorithm that identifies the best ranker.
pub(crate) trait Exploration: Debug + Send + Sync {
    /// The next comparison. Called only until a ranker is accepted.
    fn ask(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel;

    /// Fold an observation that the tally already contains. Returns the ranker that this accepts,
    /// if any.
    fn learn(&mut self, tally: &Tally, observation: &Observation) -> Option<usize>;

    /// The best empirical ranker.
    fn guess(&self, tally: &Tally) -> usize;
}

/// The policy around one exploration. At the horizon it settles on the best empirical
/// ranker.
#[derive(Debug)]
pub(crate) struct ExploreThenExploit<E> {
    exploration: E,
    horizon: Option<u64>,
    tally: Tally,
    /// The ranker that is shown alone once exploration is over.
    settled: Option<usize>,
}

impl<E: Exploration> ExploreThenExploit<E> {
    pub(crate) fn new(exploration: E, horizon: Option<u64>, rankers: usize) -> Self {
        Self { exploration, horizon, tally: Tally::new(rankers), settled: None }
    }

    fn settle_at_the_horizon(&mut self) {
        if self.settled.is_none()
            && self.horizon.is_some_and(|horizon| self.tally.steps() >= horizon)
        {
            self.settled = Some(self.exploration.guess(&self.tally));
        }
    }
}

impl<E: Exploration> Bandit for ExploreThenExploit<E> {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        match self.settled {
            Some(ranker) => Selection::of(ranker, ranker),
            None => {
                let Duel { first, second } = self.exploration.ask(in_flight, rng);
                Selection::of(first, second)
            }
        }
    }

    fn observe(&mut self, observation: &Observation) {
        self.tally.record(observation.duel, observation.outcome);
        if self.settled.is_none() && observation.outcome != Outcome::None {
            self.settled = self.exploration.learn(&self.tally, observation);
        }
        self.settle_at_the_horizon();
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
        self.settle_at_the_horizon();
    }

    fn champion(&self) -> usize {
        self.settled.unwrap_or_else(|| self.exploration.guess(&self.tally))
    }
}
