//! A run that orders decide: baskets take the place of answers.
//!
//! The policy learns from the first credit of a unit, when it is folded, and the verdict counts the
//! basket once it has closed. The two never mix: the outcome that the policy learns from is left
//! out of the verdict for good, and the score of the closed basket teaches the policy nothing more.

use super::Run;
use crate::evidence::{Admission, EqualAnswers, TimedAnswer};
use crate::orders::{Baskets, Changed, Closed, Credited};
use crate::{Observation, Outcome};

impl Run {
    /// A fact has changed the basket of a unit: the policy learns from its first credit, and the
    /// verdict is expected to count the basket as it is now. After a fact that has
    /// [halved](Changed::halved) the baskets, call [`Run::expect`] too, and before the next
    /// selection [`Run::catch_up`].
    pub fn follow(&mut self, changed: &Changed) {
        if let Some(credited) = &changed.credited {
            self.learn(credited);
        }
        let counts = |&(at, _): &(i64, EqualAnswers)| {
            self.cohorts.verdict_counts(self.cohorts.start_of_cohort(at))
        };
        let [before, now] = changed.answers.map(|answer| answer.filter(counts).map(|it| it.1));
        if before == now {
            return;
        }
        if let Some(expected) = &mut self.expected {
            if let Some(before) = before {
                expected.leave_out(self.policy.tally(), &before);
            }
            if let Some(now) = now {
                expected.count_again(&now);
            }
        }
        self.show_changed_evidence(now.or(before).map(|answer| answer.duel));
    }

    fn learn(&mut self, credited: &Credited) {
        let &Credited { duel, outcome, ticket } = credited;
        self.policy.observe_deferred(&Observation { duel, outcome, batch: None, ticket });
        let tally = self.policy.tally();
        self.tracker.leave_out(tally, duel, outcome);
        if let Some(expected) = &mut self.expected {
            expected.leave_out(tally, &EqualAnswers::by_outcome(duel, outcome, 1));
        }
        self.show_changed_evidence(Some(duel));
    }

    /// The verdict is expected to count all open baskets with the score that they have now. Follows
    /// from the baskets and the run: call it after a restore.
    pub fn expect(&mut self, baskets: &Baskets) {
        if self.expected.is_some() {
            let counts = |at: i64| self.cohorts.verdict_counts(self.cohorts.start_of_cohort(at));
            let waiting = baskets.expected().filter(|it| counts(it.0)).map(|it| it.1);
            let waiting: Vec<_> = waiting.collect();
            self.expected = Some(self.tracker.counted().with_waiting(&waiting));
            self.show_evidence();
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
                    self.count_basket(&answer);
                }
                _ => self.cohorts.know(basket.unit),
            }
        }
        self.complete(until, at);
        closed
    }

    /// A basket that was expected to count waits for its cohort, which is complete.
    fn count_basket(&mut self, answer: &TimedAnswer) {
        let &TimedAnswer { duel, outcome, score, issued_at, segment, .. } = answer;
        let was_expected = self.cohorts.verdict_counts(self.cohorts.start_of_cohort(issued_at));
        let added = self.cohorts.add(answer);
        let own = EqualAnswers { duel, outcome, score, segment, count: 1 };
        let stays = added.admission == Admission::Waits || !was_expected;
        if let Some(expected) = &mut self.expected {
            for answers in added.no_longer_expected.iter().chain((!stays).then_some(&own)) {
                expected.leave_out(self.policy.tally(), answers);
            }
        }
    }
}
