//! How the answers of a run come to count for its verdict, once the policy has observed them.

use crate::evidence::cohorts::{Admission, Cohorts, Completed, TimedAnswer};
use crate::evidence::verdict::VerdictTracker;
use crate::{Policy, Tally};

/// The parts of a run that take part. The policy learns from every answer, and hears which of them
/// do not count.
pub struct Counting<'a> {
    /// Finds the verdict.
    pub tracker: &'a mut VerdictTracker,
    /// Decides which answers count, and when.
    pub cohorts: &'a mut Cohorts,
    /// The policy, whose tally has all answers.
    pub policy: &'a mut dyn Policy,
    /// The active rankers.
    pub active: &'a [usize],
}

impl Counting<'_> {
    /// The policy has observed an answer: count it now, later, or not at all. `counted` is called
    /// with the number of comparisons that were added to what counts.
    pub fn admit(
        &mut self,
        answer: &TimedAnswer,
        counted: impl FnOnce(&VerdictTracker, &Tally, u64),
    ) {
        let admission = self.cohorts.add(answer);
        if admission != Admission::Counted {
            self.tracker.leave_out(self.policy.tally(), answer.duel, answer.outcome);
        }
        match admission {
            Admission::Counted => {
                self.tracker.observe(self.policy.tally(), self.active, 1);
                counted(self.tracker, self.policy.tally(), 1);
            }
            Admission::Waits => self.recheck(),
            // the other answer was left out while it waited, and stays so
            Admission::Replaces(duel, outcome) => self.policy.leave_out(duel, outcome),
            Admission::LeftOut(_) => {
                self.policy.leave_out(answer.duel, answer.outcome);
                // the policy may have taken this answer for the last one that was missing
                if self.cohorts.window_ms() == 0 {
                    self.reconsider();
                }
            }
        }
    }

    /// No answer of a duel issued before `until` can come any more: count them, cohort by cohort in
    /// the order of issue. `counted` is called after each.
    pub fn complete(&mut self, until: i64, mut counted: impl FnMut(&VerdictTracker, &Tally, u64)) {
        let completed = self.cohorts.complete(until);
        if completed.is_empty() {
            return;
        }
        for cohort in completed {
            let mut comparisons = 0;
            for Completed { duel, outcome, count, counts } in cohort {
                if counts {
                    self.tracker.count_again(duel, outcome, count);
                    comparisons += u64::from(count);
                } else {
                    self.policy.leave_out(duel, outcome);
                }
            }
            if comparisons > 0 {
                self.tracker.observe(self.policy.tally(), self.active, comparisons);
                counted(self.tracker, self.policy.tally(), comparisons);
            }
        }
        self.reconsider();
    }

    /// An answer waits. It may take back what gave the policy a verdict. The policy must hear of it
    /// now, and not when the answer counts, which can be hours later.
    fn recheck(&mut self) {
        let (with_unit, without_unit) = self.cohorts.answers();
        if (with_unit + without_unit).is_multiple_of(self.tracker.checks_every(self.active.len())) {
            self.reconsider();
        }
    }

    /// What counts has given no verdict: a policy that has found one must not rest on it.
    fn reconsider(&mut self) {
        if self.tracker.verdict().is_none() {
            self.policy.reconsider_verdict();
        }
    }
}
