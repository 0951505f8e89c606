//! Pages of one ranker alone, in the log.

use super::State;
use crate::cohorts::SLACK_MS;
use crate::experiment_spec::arm_of;
use dueling_bandits::claims::alone::Arm;
use dueling_bandits::evidence::Cohorts;
use rankduel_store::events::UnitHash;

impl State {
    /// The arm of a unit that sees one ranker alone.
    pub(super) fn arm_of(&self, unit: Option<u64>) -> Option<Arm> {
        arm_of(self.spec.alone, unit)
    }

    /// The arms of units that got a page of one ranker alone.
    pub(super) fn arms_of(&self, units: &[UnitHash]) -> Result<Vec<(u64, Arm)>, String> {
        let arm = |&UnitHash(unit): &UnitHash| Some((unit, self.arm_of(Some(unit))?));
        let arms: Option<Vec<_>> = units.iter().map(arm).collect();
        arms.ok_or_else(|| "it shows one ranker alone to a unit that sees duels".to_owned())
    }

    /// Units of these arms got a page.
    pub(super) fn shown_alone(&mut self, arms: &[(u64, Arm)], position: u64) {
        let excluded = &self.excluded;
        let counted = arms.iter().copied().filter(|&(unit, _)| !excluded.has(Some(unit)));
        if let Some(alone) = &mut self.alone {
            alone.issue(counted, position);
        }
    }

    /// A unit has answered a page of one ranker.
    pub(super) fn answered_alone(&mut self, cohorts: &Cohorts, unit: Option<u64>, issued_at: i64) {
        let Some((unit, arm)) = unit.zip(self.arm_of(unit)) else { return };
        let position = self.position + 1;
        let cohort = (cohorts.window_ms() > 0).then(|| cohorts.start_of_cohort(issued_at));
        if let Some(alone) = self.alone.as_mut().filter(|_| !self.excluded.has(Some(unit))) {
            alone.answer(unit, arm, cohort, position);
        }
    }

    /// Count the answers whose windows are over now. It is not enough that all duels of a cohort
    /// were answered: nobody waits for these pages.
    pub(super) fn complete_alone(&mut self, cohorts: &Cohorts, now: i64) {
        let position = self.position + 1;
        // clicks that wait to be settled
        let settled = self.open_pages.oldest_issue().unwrap_or(i64::MAX);
        if let Some(alone) = self.alone.as_mut().filter(|_| cohorts.window_ms() > 0) {
            let until = cohorts.ended_until(now - SLACK_MS).min(settled);
            alone.complete(cohorts.start_of_cohort(until), position);
        }
    }
}
