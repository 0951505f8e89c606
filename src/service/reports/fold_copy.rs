//! The part of a fold that most reports read.

use dueling_bandits::evidence::{EqualAnswers, Posterior, RacePoint, Target, VerdictTracker};
use dueling_bandits::{PolicyRng, Roster, Tally, step_rng};
use rankduel_engine::fold::Fold;
use rankduel_engine::fold::counts::Counts;

/// Separates the random draws of verdicts from other uses of the seed of an experiment.
const VERDICT_STREAM: u64 = 0x7665_7264_6963;

/// A copy, so that the lock of the fold is not held while a report is computed.
#[derive(Debug)]
pub struct FoldCopy {
    pub position: u64,
    pub champion: usize,
    pub counts: Counts,
    /// The appearances of each ranker before the newest change of the status.
    pub shown_before_status: Vec<u64>,
    /// The counts by the tie rule of the experiment.
    pub tally: Tally,
    pub roster: Roster,
    /// How often a ranker was added or retired.
    pub roster_changes: usize,
    pub tracker: VerdictTracker,
    /// How the evidence of the leader grew.
    pub race: Vec<RacePoint>,
    is_by_orders: bool,
}

impl FoldCopy {
    pub fn of(fold: &Fold) -> Self {
        Self {
            position: fold.state().position,
            champion: fold.run().policy().champion(),
            counts: fold.state().counts.clone(),
            shown_before_status: fold.state().shown_before_status.clone(),
            tally: fold.run().policy().tally().clone(),
            roster: fold.run().roster().clone(),
            roster_changes: fold.state().roster_changes(),
            tracker: fold.run().verdict().clone(),
            race: fold.run().race().points().to_vec(),
            is_by_orders: fold.state().baskets.is_some(),
        }
    }

    /// The tracker at this target that counts these answers too, which wait; `None` if none wait.
    pub(super) fn tracker_with_waiting(
        &self,
        waiting: &[EqualAnswers],
        target: Target,
    ) -> Option<VerdictTracker> {
        if waiting.is_empty() {
            return None;
        }
        let Self { tracker: own, tally, roster, .. } = self;
        let mut expected = own.clone().counting(own.counted().with_waiting(waiting));
        if target != own.target() {
            return Some(expected.judge(target, tally, roster.active()));
        }
        expected.check(tally, roster.active());
        Some(expected)
    }

    /// Answered duels and pages of one ranker.
    pub fn steps(&self) -> u64 {
        self.counts.answered_duels() + self.counts.self_duels
    }

    /// Whether a duel of two active rankers has counted; where orders decide, a basket.
    pub fn has_compared(&self) -> bool {
        if self.is_by_orders && self.tracker.comparisons() == 0 {
            return false;
        }
        let active = self.roster.active();
        let met = |i, j| self.tally.half_plays(i, j) > 0;
        active.iter().any(|&i| active.iter().any(|&j| j < i && met(i, j)))
    }

    /// The leader that every report names; `seed` is that of the experiment. Takes long with many
    /// rankers.
    pub fn leader(&self, seed: u64) -> usize {
        let winners = winners(&self.tracker);
        if let Some(&winner) = winners.first() {
            return winner;
        }
        let draws = Posterior::draws(self.tally.rankers());
        let posterior = Posterior::among(&self.tally, &self.roster);
        let chances = posterior.winner_probabilities(draws, &mut verdict_rng(seed));
        self.most_probable(&chances.copeland, &winners)
    }

    /// The first winner, or else the most probable Copeland winner. If several have the same
    /// probability, the one that leads the counts.
    pub(super) fn most_probable(&self, chances: &[f64], winners: &[usize]) -> usize {
        if let Some(&winner) = winners.first() {
            return winner;
        }
        let active = self.roster.active();
        let most = active.iter().map(|&i| chances[i]).fold(0.0, f64::max);
        let level: Vec<usize> = active.iter().copied().filter(|&i| chances[i] == most).collect();
        self.tally.copeland_leader_among(&level)
    }
}

pub(super) fn winners(tracker: &VerdictTracker) -> Vec<usize> {
    let verdict = tracker.verdict();
    verdict.map_or_else(Vec::new, |verdict| verdict.winners.iter().map(|&w| w.into()).collect())
}

/// The same stream at every position: otherwise the leader would change without new answers.
pub(super) fn verdict_rng(seed: u64) -> PolicyRng {
    step_rng(seed ^ VERDICT_STREAM, 0)
}
