//! Which answers of a tally count, and which of them by a score.

use crate::evidence::cohorts::EqualAnswers;
use crate::evidence::scores::{Score, ScoreCounts};
use crate::{Duel, Tally};

/// The answers of a tally that count.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// Wins of the tally that do not count: those before the newest change of the roster, and those
    /// left out. `None` if all count.
    left_out: Option<Tally>,
    /// Scores of answers that count.
    scores: ScoreCounts,
}

impl Counted {
    /// No answer of `tally` counts.
    pub(super) fn none_of(tally: &Tally) -> Self {
        Self { left_out: Some(tally.clone()), scores: ScoreCounts::default() }
    }

    /// Whether an answer was ever left out.
    pub fn leaves_out(&self) -> bool {
        self.left_out.is_some()
    }

    /// Scores of answers that count.
    pub fn scores(&self) -> &ScoreCounts {
        &self.scores
    }

    /// Wins of ranker `x` over `y` that count. One that counts by its score adds its weight instead
    /// of 1. So the share of the wins is what the verdict is about.
    pub fn wins(&self, tally: &Tally, x: usize, y: usize) -> f64 {
        tally.wins(x, y) - self.left_out(x, y) + self.scores.added_wins(x, y)
    }

    /// Wins of ranker `x` over `y` that do not count.
    pub(in crate::evidence) fn left_out(&self, x: usize, y: usize) -> f64 {
        let left_out = self.left_out.as_ref().filter(|left_out| x.max(y) < left_out.rankers());
        left_out.map_or(0.0, |left_out| left_out.wins(x, y))
    }

    /// `count` answers count by this score, in place of their outcome.
    pub(crate) fn score(&mut self, duel: Duel, score: Score, count: u32) {
        self.scores.add(duel, score, count);
    }

    /// Answers of `tally` do not count, or not yet. They have a score only if it was added, to take
    /// it back.
    pub(crate) fn leave_out(&mut self, tally: &Tally, answers: &EqualAnswers) {
        let left_out = self.left_out.get_or_insert_with(|| Tally::new(tally.rankers()));
        while left_out.rankers() < tally.rankers() {
            left_out.enlist();
        }
        let &EqualAnswers { duel, outcome, score, count, .. } = answers;
        left_out.record_run(duel, outcome, count);
        if let Some(score) = score {
            self.scores.remove(duel, score, count);
        }
    }

    /// Answers that were left out count, by their score if they have one.
    pub(crate) fn count_again(&mut self, answers: &EqualAnswers) {
        let &EqualAnswers { duel, outcome, score, count, .. } = answers;
        if let Some(left_out) = &mut self.left_out {
            left_out.remove_run(duel, outcome, count);
        }
        if let Some(score) = score {
            self.scores.add(duel, score, count);
        }
    }

    /// The same once these answers, which wait, count too.
    pub fn with_waiting(&self, waiting: &[EqualAnswers]) -> Self {
        let mut counted = self.clone();
        for answers in waiting {
            counted.count_again(answers);
        }
        counted
    }

    /// The wins of `tally` that count, by their outcomes.
    pub fn of(&self, tally: &Tally) -> Tally {
        let mut counted = tally.clone();
        if let Some(left_out) = &self.left_out {
            counted.remove(left_out);
        }
        counted
    }

    /// Estimated bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.left_out.as_ref().map_or(0, Tally::bytes) + self.scores.bytes()
    }

    /// Whether a decoded value fits `tally`.
    pub(super) fn is_sound(&self, tally: &Tally) -> bool {
        let left_out = |x: usize, y: usize| {
            let known = self.left_out.as_ref().filter(|left_out| x.max(y) < left_out.rankers());
            known.map_or(0, |left_out| left_out.half_wins(x, y))
        };
        let rankers = tally.rankers();
        let is_part = |x, y| left_out(x, y) <= tally.half_wins(x, y);
        self.left_out.as_ref().is_none_or(|left_out| left_out.rankers() <= rankers)
            && (0..rankers).all(|x| (0..rankers).all(|y| is_part(x, y)))
            && self.scores.is_sound(rankers, |x, y| tally.half_wins(x, y) - left_out(x, y))
    }
}
