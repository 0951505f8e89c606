//! Capabilities that only some policies have: batches, roster changes, deferred updates, and
//! planning for a verdict.
//!
//! A [`Policy`](crate::Policy) returns `Some` for each capability that it has.

use crate::evidence::scores::Score;
use crate::evidence::verdict::VerdictTracker;
use crate::{Duel, Observation, Outcome, RosterError};

/// A policy that commits to batches of comparisons and adapts only between them. Reached by
/// [`Policy::batches`](crate::Policy::batches).
pub trait Batches {
    /// Number of the open batch, from 1; `None` while no batch is open.
    fn number(&self) -> Option<u32>;

    /// How far the open batch is; zeros while no batch is open. The time does not grow with the
    /// batch.
    fn progress(&self) -> BatchProgress;

    /// The pairs of the open batch in a fixed order, without the first `skipped`; empty while no
    /// batch is open. The time to skip them does not grow with their number.
    fn pairs_after(&self, skipped: usize) -> Box<dyn Iterator<Item = BatchPair> + '_>;

    /// The pairs of the open batch in a fixed order; empty while no batch is open.
    fn pairs(&self) -> Box<dyn Iterator<Item = BatchPair> + '_> {
        self.pairs_after(0)
    }
}

/// How far an open batch is, over all its pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchProgress {
    /// Number of pairs.
    pub pairs: usize,
    /// Comparisons that the batch asks for.
    pub needed: u64,
    /// Comparisons answered so far, at most `needed`.
    pub answered: u64,
}

/// One pair of an open batch, and its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPair {
    /// The ordered pair.
    pub duel: Duel,
    /// Comparisons that the batch asks for.
    pub needed: u32,
    /// Comparisons answered so far, at most `needed`.
    pub answered: u32,
}

/// A policy whose rankers can change while it runs. Reached by
/// [`Policy::mutable_roster`](crate::Policy::mutable_roster).
pub trait MutableRoster {
    /// Add one ranker, with the next index.
    fn enlist(&mut self) -> Result<(), RosterError>;

    /// Never select `ranker` again. Its counts stay. Does nothing if it is retired already.
    fn retire(&mut self, ranker: usize) -> Result<(), RosterError>;

    /// Keep `ranker` out of the tournament from the start, before the first step. It is retired,
    /// and that is no change of the roster that the counts so far could have caused.
    fn hold_out(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.retire(ranker)
    }
}

/// A policy that can postpone work while it folds many observations in a row. Reached by
/// [`Policy::deferred_updates`](crate::Policy::deferred_updates).
///
/// Only work for [`Policy::select`](crate::Policy::select) is postponed. After
/// [`DeferredUpdates::catch_up`], the state is the same as after
/// [`Policy::observe`](crate::Policy::observe).
pub trait DeferredUpdates {
    /// Fold one answered duel. `select` must not be called before [`DeferredUpdates::catch_up`].
    fn observe_deferred(&mut self, observation: &Observation);

    /// Do the postponed work.
    fn catch_up(&mut self);
}

/// A policy that selects duels for a verdict that its caller gives. Reached by
/// [`Policy::verdict_planning`](crate::Policy::verdict_planning).
///
/// A caller that counts every answer at once needs none of it: the policy then finds the same
/// verdict by itself.
pub trait VerdictPlanning {
    /// The answer that is observed next counts for the verdict by this score.
    fn score(&mut self, duel: Duel, score: Score);

    /// An answer that was observed does not count for the verdict, or is not expected to.
    fn leave_out(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>);

    /// An answer that was left out is expected to count after all.
    fn count_again(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>);

    /// What counts so far gives no verdict, as `decides` finds. A policy that has found one looks
    /// again, and goes on if its counts do not give it any more. Returns whether it still has a
    /// verdict.
    fn reconsider(&mut self, decides: &VerdictTracker) -> bool;
}
