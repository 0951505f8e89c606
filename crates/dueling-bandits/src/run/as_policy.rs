//! A run as a policy.

use super::Run;
use crate::{Batches, InFlight, Observation, Policy, PolicyRng, Selection, Tally};

/// A run in which every answer counts at once, as simulations have it.
impl Policy for Run {
    fn tally(&self) -> &Tally {
        self.policy.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        Self::select(self, in_flight, rng)
    }

    fn uses_in_flight(&self) -> bool {
        self.policy.uses_in_flight()
    }

    fn observe(&mut self, observation: &Observation) {
        self.policy.observe(observation);
        let (active, duel) = (self.roster.active(), observation.duel);
        self.tracker.observe(self.policy.tally(), active, duel);
        self.count_for_claims(duel, observation.outcome, None, 0, 1);
        self.check_claims(1);
        self.follow(Some(duel));
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.policy.observe_self_duels(ranker, count);
    }

    fn champion(&self) -> usize {
        self.policy.champion()
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.policy.batches()
    }

    /// Of the policy alone.
    fn format(&self) -> u32 {
        self.policy.format()
    }

    /// Of the policy alone.
    fn save(&self) -> Vec<u8> {
        self.policy.save()
    }
}
