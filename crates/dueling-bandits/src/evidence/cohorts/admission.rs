//! An answer as the cohorts receive it, and their decision on it.

use crate::evidence::scores::Score;
use crate::{Duel, Outcome};

/// An answer with what decides whether it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedAnswer {
    /// The pair.
    pub duel: Duel,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its score, whose outcome it is, if it counts by a score.
    pub score: Option<Score>,
    /// Milliseconds at which the duel was issued.
    pub issued_at: i64,
    /// Distinguishes duels that were issued in the same millisecond.
    pub nonce: u128,
    /// Hash of the unit that answered, if the caller names units.
    pub unit: Option<u64>,
    /// Number of the declared segment of its page, from 1; 0 for any other page.
    pub segment: u8,
}

/// Whether an answer counts, waits, or is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It counts now.
    Counted,
    /// It counts once its cohort is complete.
    Waits,
    /// It waits like that, but the verdict is not expected to count it: an answer of its unit that
    /// was issued in an earlier cohort waits too, or the verdict has started again since the issue.
    WaitsUnexpected,
    /// It does not count.
    LeftOut(Reason),
}

/// The changes that an answer makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The decision on the answer itself.
    pub admission: Admission,
    /// Other answers that wait and that the verdict is no longer expected to count: at most three
    /// of units, or all of a pair that lost its place in a full cohort.
    pub no_longer_expected: Vec<EqualAnswers>,
}

impl From<Admission> for Added {
    fn from(admission: Admission) -> Self {
        Self { admission, no_longer_expected: Vec::new() }
    }
}

/// Equal answers of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EqualAnswers {
    /// The pair.
    pub duel: Duel,
    /// Their outcome.
    pub outcome: Outcome,
    /// Their score, whose outcome it is, if they count by a score.
    pub score: Option<Score>,
    /// Number of the declared segment of their pages, from 1; 0 for any other page.
    pub segment: u8,
    /// How many they are.
    pub count: u32,
}

impl EqualAnswers {
    /// Answers that count by their outcome, of pages outside all segments.
    pub fn by_outcome(duel: Duel, outcome: Outcome, count: u32) -> Self {
        Self { duel, outcome, score: None, segment: 0, count }
    }
}

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Its unit is known: another answer of it counts, or taught the policy without counting.
    RepeatedUnit,
    /// It came after its cohort was complete.
    Late,
    /// Its cohort has as many units or pairs as it can keep.
    Full,
}

/// How many answers do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// For [`Reason::RepeatedUnit`].
    pub repeated_unit: u64,
    /// For [`Reason::Late`].
    pub late: u64,
    /// For [`Reason::Full`].
    pub full: u64,
}

impl LeftOut {
    pub(super) fn add(&mut self, reason: Reason) -> Admission {
        *match reason {
            Reason::RepeatedUnit => &mut self.repeated_unit,
            Reason::Late => &mut self.late,
            Reason::Full => &mut self.full,
        } += 1;
        Admission::LeftOut(reason)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.repeated_unit + self.late + self.full
    }
}

/// Answers whose cohort is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// The answers.
    pub answers: EqualAnswers,
    /// Whether they count. Those of units that were counted meanwhile do not.
    pub counts: bool,
    /// Whether the verdict was expected to count them.
    pub expected: bool,
}
