//! Uniform pairs: what exploration costs without a policy. Every other policy is measured against it.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::spec::{Description, InvalidPolicy, PolicyParameters, Setup};
use super::{Chance, InFlight, Observation, Policy, Selection, Tally, load_state, save_state};

const FORMAT: u32 = 1;

/// No parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {}

impl PolicyParameters for Uniform {
    const DESCRIPTION: Description = Description {
        summary: "Both rankers uniformly at random, for ever: the yardstick, not a policy to serve with.",
        source: "the baseline of every dueling-bandit paper",
        assumes: "nothing",
        parameters: &[],
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        Ok(())
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(UniformPairs { tally: Tally::new(setup.rankers) })
    }

    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let tally: Tally = load_state(state)?;
        (tally.rankers() == setup.rankers).then_some(())?;
        Some(Box::new(UniformPairs { tally }))
    }
}

#[derive(Debug)]
struct UniformPairs {
    tally: Tally,
}

impl Policy for UniformPairs {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, _in_flight: &InFlight, chance: &mut Chance) -> Selection {
        let k = self.tally.rankers();
        Selection::of(chance.random_range(0..k), chance.random_range(0..k))
    }

    fn uses_in_flight(&self) -> bool {
        false
    }

    fn observe(&mut self, observation: &Observation) {
        self.tally.record(observation.duel, observation.outcome);
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }

    fn format(&self) -> u32 {
        FORMAT
    }

    fn save(&self) -> Vec<u8> {
        save_state(&self.tally)
    }
}
