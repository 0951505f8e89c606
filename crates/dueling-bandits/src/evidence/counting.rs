//! How the answers of a run come to count for its verdict, once the policy has observed them.

use crate::evidence::cohorts::{Added, Admission, Change, Cohorts, Completed, TimedAnswer};
use crate::evidence::verdict::VerdictTracker;
use crate::{Policy, Tally};

/// With more rankers than this, a check takes too long to follow every answer.
pub(super) const FEW: usize = 64;

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
    /// The policy has observed an answer, and its score: count it now, later, or not at all.
    /// `counted` is called with the number of comparisons that were added to what counts, which may
    /// be 0, and sees the verdict if there is one.
    pub fn admit(
        &mut self,
        answer: &TimedAnswer,
        counted: impl FnOnce(&VerdictTracker, &Tally, u64),
    ) {
        let Added { admission, others } = self.cohorts.add(answer);
        if admission != Admission::Counted {
            self.tracker.leave_out(self.policy.tally(), answer.duel, answer.outcome);
        } else if let Some(score) = answer.score {
            self.tracker.score(answer.duel, score, 1);
        }
        match admission {
            Admission::Counted => {
                self.tracker.observe(self.policy.tally(), self.active, answer.duel)
            }
            Admission::Waits => {}
            Admission::WaitsAsRepeat | Admission::LeftOut(_) => {
                self.policy.leave_out(answer.duel, answer.outcome, answer.score);
            }
        }
        // the tracker leaves all of them out while they wait
        for Change { duel, outcome, score, counts } in others {
            match counts {
                true => self.policy.count_again(duel, outcome, score),
                false => self.policy.leave_out(duel, outcome, score),
            }
        }
        if self.active.len() <= FEW || self.is_check_due() {
            self.reconcile();
        }
        let count = u64::from(admission == Admission::Counted);
        counted(self.tracker, self.policy.tally(), count);
    }

    /// No answer of a duel issued before `until` can come any more: count them, cohort by cohort in
    /// the order of issue. `counted` is called after each, and once more at the end, with 0.
    pub fn complete(&mut self, until: i64, mut counted: impl FnMut(&VerdictTracker, &Tally, u64)) {
        let completed = self.cohorts.complete(until);
        if completed.is_empty() {
            return;
        }
        for cohort in completed {
            let mut comparisons = 0;
            for Completed { duel, outcome, score, count, counts, expected } in cohort {
                if counts {
                    self.tracker.count_again(duel, outcome, count);
                    if let Some(score) = score {
                        self.tracker.score(duel, score, count);
                    }
                    comparisons += u64::from(count);
                } else if expected {
                    self.policy.leave_out(duel, outcome, score);
                }
            }
            if comparisons > 0 {
                self.tracker.observe_several(self.policy.tally(), self.active, comparisons);
                counted(self.tracker, self.policy.tally(), comparisons);
            }
        }
        self.reconcile();
        counted(self.tracker, self.policy.tally(), 0);
    }

    /// Whether this answer is one of those after which many rankers are checked.
    fn is_check_due(&self) -> bool {
        let answers = match self.cohorts.window_ms() {
            0 => self.tracker.comparisons() + self.cohorts.left_out().total(),
            _ => self.cohorts.answers().0 + self.cohorts.answers().1,
        };
        answers.is_multiple_of(self.tracker.checks_every(self.active.len()))
    }

    fn reconcile(&mut self) {
        reconcile(self.tracker, self.policy, self.active);
    }
}

/// The tracker with the answers that wait and are [expected](Cohorts::expected) to count. This is
/// what a policy that plans for the verdict believes, and where an estimate of the future starts.
pub fn with_waiting(mut tracker: VerdictTracker, expected: &[Completed]) -> VerdictTracker {
    for &Completed { duel, outcome, score, count, .. } in expected {
        tracker.count_again(duel, outcome, count);
        if let Some(score) = score {
            tracker.score(duel, score, count);
        }
    }
    tracker
}

/// A policy that has found a verdict by itself compares hardly any more. If what counts gives none,
/// one of the two must move. The policy goes on if its own counts, with the refuters of `tracker`,
/// give it none any more. Otherwise what counts is checked now, since the next regular check would
/// come very late.
pub(super) fn reconcile(tracker: &mut VerdictTracker, policy: &mut dyn Policy, active: &[usize]) {
    if tracker.verdict().is_none() && policy.reconsider_verdict(tracker) {
        tracker.check_now(policy.tally(), active);
    }
}
