//! Which answers the verdict of a fold counts, and when.

use super::Fold;
use dueling_bandits::evidence::{Counting, PairChecks, TimedAnswer, VerdictTracker};
use dueling_bandits::{Duel, Tally};

impl Fold {
    /// The policy has observed an answer: count it for the verdict now, later, or not at all.
    pub(super) fn admit(&mut self, answer: &TimedAnswer) {
        let (mut counting, counted) = self.counting();
        counting.admit(answer, counted);
    }

    /// No answer of a duel issued before `until` can come any more.
    pub(super) fn complete_cohorts(&mut self, until: i64) {
        let (mut counting, counted) = self.counting();
        counting.complete(until, counted);
    }

    /// The parts that take part in counting, and what follows it.
    fn counting(&mut self) -> (Counting<'_>, impl FnMut(&VerdictTracker, &Tally, u64)) {
        let Self { verdict: tracker, cohorts, policy, roster, race, .. } = self;
        let (policy, active, at) = (&mut **policy, roster.active(), self.recorded_at);
        let counted = move |tracker: &VerdictTracker, tally: &Tally, count: u64| {
            race.observe(tracker, tally, active, count, at);
        };
        (Counting { tracker, cohorts, policy, active }, counted)
    }

    /// `count` comparisons of a pair that were made elsewhere were added to what the verdict counts.
    /// Nothing else has changed since `checks` was made.
    pub(super) fn compared(&mut self, duel: Duel, count: u64, checks: &mut PairChecks) {
        let (tally, active) = (self.policy.tally(), self.roster.active());
        self.verdict.observe_pair(tally, active, (duel, count), checks);
        self.race.observe(&self.verdict, tally, active, count, self.recorded_at);
    }

    /// The rankers changed at this time: the verdict starts again, with duels issued afterwards.
    pub(super) fn roster_changed(&mut self, at: i64) {
        self.verdict.roster_changed(self.policy.tally(), self.roster.active().len());
        self.cohorts.restart(at);
        self.race.roster_changed();
    }
}
