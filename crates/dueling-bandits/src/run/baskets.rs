//! A run that orders decide: baskets take the place of answers.
//!
//! The policy learns from the first credit of a unit, when it is folded, and the verdict counts the
//! basket once it has closed. The two never mix: the outcome that the policy learns from is left
//! out of the verdict for good, and the score of the closed basket teaches the policy nothing more.

use super::Run;
use crate::evidence::{EqualAnswers, TimedAnswer};
use crate::orders::{Baskets, Closed, Credited};
use crate::{Observation, Outcome};

impl Run {
    /// The policy learns from the first credit of a unit. Call [`Run::expect`] and
    /// [`Run::catch_up`] before the next selection.
    pub fn learn(&mut self, credited: &Credited) {
        let &Credited { duel, outcome, ticket, .. } = credited;
        self.policy.observe_deferred(&Observation { duel, outcome, batch: None, ticket });
        let tally = self.policy.tally();
        self.tracker.leave_out(tally, duel, outcome);
        if let Some(expected) = &mut self.expected {
            expected.leave_out(tally, &EqualAnswers::by_outcome(duel, outcome, 1));
        }
        self.show_changed_evidence(Some(duel));
    }

    /// The verdict is expected to count open baskets with the score that they have now. It follows
    /// from the baskets and the run: call it when either has changed and before a selection, and
    /// after a restore. With two rankers no selection depends on it.
    pub fn expect(&mut self, baskets: &Baskets) {
        if self.expected.is_some() {
            let counts = |at: i64| self.cohorts.verdict_counts(self.cohorts.start_of_cohort(at));
            let waiting = baskets.expected(counts);
            self.expected = Some(self.tracker.counted().with_waiting(&waiting));
            self.show_changed_evidence(None);
        }
    }

    /// Nothing of baskets that opened before `until` can come any more: close them and count them,
    /// cohort by cohort, as [`Run::complete`] does. Their units are known from now on, whether they
    /// ordered or not. Returns them.
    pub fn close_baskets(&mut self, baskets: &mut Baskets, until: i64, at: i64) -> Vec<Closed> {
        let closed = baskets.close(self.cohorts.start_of_cohort(until));
        for basket in &closed {
            match (basket.duel, basket.score) {
                (Some(duel), Some(score)) => {
                    let &Closed { unit, issued_at, segment, .. } = basket;
                    let (outcome, unit, nonce) = (Outcome::Void, Some(unit), 0);
                    let score = Some(score);
                    let answer =
                        TimedAnswer { duel, outcome, score, issued_at, nonce, unit, segment };
                    self.cohorts.add(&answer);
                }
                _ => self.cohorts.know(basket.unit),
            }
        }
        self.complete(until, at);
        self.expect(baskets);
        closed
    }
}
