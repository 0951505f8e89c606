//! Duels: what a policy selects, and what it observes.

use crate::Outcome;

/// An ordered pair of rankers (indices from 0). Equal indices are a self-duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duel {
    /// The candidate. Some policies treat it differently from the second.
    pub first: usize,
    /// The challenger.
    pub second: usize,
}

impl Duel {
    /// The ordered pair (first, second).
    pub fn new(first: usize, second: usize) -> Self {
        Self { first, second }
    }

    /// Whether both are the same ranker, so that the duel teaches nothing.
    pub fn is_self(self) -> bool {
        self.first == self.second
    }
}

/// A selected duel, from [`Bandit::select`](crate::Bandit::select). The caller keeps it until the
/// outcome is known and copies `batch` and `ticket` into the [`Observation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// The pair to compare.
    pub duel: Duel,
    /// The batch that the duel belongs to, counted from 1; `None` outside batches.
    pub batch: Option<u32>,
    /// Data about this selection that the policy needs together with the outcome: an epoch, a step
    /// number, a probability. 0 if it needs none.
    pub ticket: u64,
}

impl Selection {
    /// A duel outside of any batch, with ticket 0.
    pub fn of(first: usize, second: usize) -> Self {
        Self { duel: Duel::new(first, second), batch: None, ticket: 0 }
    }

    /// The observation of this selection's outcome.
    pub fn observed(self, outcome: Outcome) -> Observation {
        Observation { duel: self.duel, outcome, batch: self.batch, ticket: self.ticket }
    }
}

/// The outcome of one selected duel, for [`Bandit::observe`](crate::Bandit::observe).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The pair that was compared; never a self-duel (see
    /// [`Bandit::observe_self_duels`](crate::Bandit::observe_self_duels)).
    pub duel: Duel,
    /// The outcome, after the tie rule.
    pub outcome: Outcome,
    /// The batch of the selection, or [`Observation::OPEN_BATCH`].
    pub batch: Option<u32>,
    /// The ticket of the selection.
    pub ticket: u64,
}

impl Observation {
    /// The batch that is open when the comparison is folded, whichever that is: for comparisons
    /// that were selected in another state of the policy. No batch has this number.
    pub const OPEN_BATCH: u32 = u32::MAX;
}

/// Comparisons of one pair that were counted elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairCounts {
    /// The ordered pair.
    pub duel: Duel,
    /// Wins of the first.
    pub first_wins: u32,
    /// Wins of the second.
    pub second_wins: u32,
    /// Ties.
    pub ties: u32,
}
