//! The probability with which a duel was selected, for those who weight answers by it.

use super::Fold;
use crate::experiment_spec::{ExperimentSpec, arm_of};
use dueling_bandits::Duel;
use dueling_bandits::run::Odds;
use rankduel_store::events::OutcomeEvent;

/// The facts that decide selections at a log position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chances {
    odds: Odds,
    /// The winner of the verdict.
    winner: Option<usize>,
    concluded: bool,
}

impl Fold {
    /// The chances of the duels that are selected at this position; `None` if it was another state
    /// that selected them.
    pub fn chances(&self) -> Option<Chances> {
        let is_own = !self.chosen_by_another_policy(self.state.position);
        is_own.then(|| Chances {
            odds: self.run.odds(),
            winner: self.verdict().winner(),
            concluded: self.state.concluded,
        })
    }
}

impl Chances {
    /// The probability with which a page of this unit got the duel that was answered, in either
    /// order; `None` if it is not known. It has the coins of pages alone, of the canary and of the
    /// watch in it, and not that of the coverage.
    pub fn of(&self, spec: &ExperimentSpec, answered: &OutcomeEvent) -> Option<f64> {
        let OutcomeEvent { first, second, unit, .. } = *answered;
        let duel = Duel::new(first.into(), second.into());
        if arm_of(spec.alone, unit).is_some() {
            return duel.is_self().then_some(spec.alone / 2.0);
        }
        let shared = if unit.is_some() { 1.0 - spec.alone } else { 1.0 };
        if self.concluded {
            let watch = match self.winner == Some(duel.first) {
                true => spec.watch,
                false => 0.0,
            };
            let chance = if duel.is_self() { 1.0 - watch } else { watch };
            return (chance > 0.0).then_some(shared * chance);
        }
        let canary = spec.canary().filter(|&[ranker, _]| !spec.is_retired(ranker));
        let share = canary.map_or(0.0, |_| spec.pages.canary_share);
        match canary {
            Some([ranker, twin]) if duel == Duel::new(ranker, twin) => Some(shared * share),
            _ => self
                .odds
                .of(duel)
                .filter(|&odds| odds > 0.0)
                .map(|odds| shared * (1.0 - share) * odds),
        }
    }
}
