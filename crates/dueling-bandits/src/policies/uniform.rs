//! Uniform pairs: the baseline that every other policy is measured against.

use rand::RngExt;

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::saved_state::{load_state, save_state};
use crate::{
    Bandit, InFlight, Observation, Policy, PolicyRng, Roster, RosterError, Selection, Tally,
};

/// No parameters.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {}

impl PolicyParameters for Uniform {
    const DESCRIPTION: Description = Description {
        summary: "Selects both rankers uniformly at random and never adapts: a baseline, not a \
                  policy for a live service.",
        source: "the baseline of every dueling-bandit paper",
        assumes: "nothing",
        parameters: &[],
        fixed_rankers: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        Ok(())
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let (tally, roster) = (Tally::new(setup.rankers), Roster::new(setup.rankers));
        Box::new(UniformPairs { tally, roster })
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        let (tally, retired): (Tally, Vec<u16>) = load_state(state)?;
        // added rankers come on top of the initial ones
        (tally.rankers() >= setup.rankers).then_some(())?;
        let roster = Roster::with_retired(tally.rankers(), &retired)?;
        Some(Box::new(UniformPairs { tally, roster }))
    }
}

#[derive(Debug)]
struct UniformPairs {
    tally: Tally,
    roster: Roster,
}

impl Bandit for UniformPairs {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, _in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let active = self.roster.active();
        let mut one = || active[rng.random_range(0..active.len())];
        Selection::of(one(), one())
    }

    fn observe(&mut self, observation: &Observation) {
        self.tally.record(observation.duel, observation.outcome);
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }

    fn champion(&self) -> usize {
        self.tally.copeland_leader_among(self.roster.active())
    }
}

impl Policy for UniformPairs {
    fn uses_in_flight(&self) -> bool {
        false
    }

    fn enlist(&mut self) -> Result<(), RosterError> {
        self.roster.enlist()?;
        self.tally.enlist();
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.roster.retire(ranker).map(drop)
    }

    fn save(&self) -> Vec<u8> {
        save_state(&(&self.tally, self.roster.retired()))
    }
}
