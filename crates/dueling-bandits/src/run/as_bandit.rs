//! A run in a simulation.

use super::Run;
use crate::evidence::EqualAnswers;
use crate::{Bandit, InFlight, Observation, Outcome, PolicyRng, Selection, Tally};

/// A run in which every answer counts at once, as simulations have it.
impl Bandit for Run {
    fn tally(&self) -> &Tally {
        self.policy.tally()
    }

    /// One that the claims need, or one that the policy selects. A policy with batches is asked
    /// first, and the claims take pages on which it would show one ranker alone.
    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if self.policy.batches().is_none() {
            let claimed = self.claimed(rng);
            return claimed.unwrap_or_else(|| self.policy.select(in_flight, rng));
        }
        let selection = self.policy.select(in_flight, rng);
        if !selection.duel.is_self() {
            return selection;
        }
        self.claimed(rng).unwrap_or(selection)
    }

    fn observe(&mut self, observation: &Observation) {
        self.policy.observe(observation);
        if observation.outcome == Outcome::None {
            self.show_changed_evidence(Some(observation.duel));
            return;
        }
        let (active, duel) = (self.roster.active(), observation.duel);
        self.tracker.observe(self.policy.tally(), active, duel);
        self.count_for_claims(&EqualAnswers::by_outcome(duel, observation.outcome, 1));
        let raised = self.check_claims(1, 0, 0);
        self.show_changed_evidence(Some(duel));
        self.restart_after(raised, 0);
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.policy.observe_self_duels(ranker, count);
    }

    fn champion(&self) -> usize {
        self.policy.champion()
    }

    fn run(&self) -> Option<&Run> {
        Some(self)
    }
}
