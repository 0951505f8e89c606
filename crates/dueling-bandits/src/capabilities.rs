//! Capabilities that only some policies have: batches, roster changes, and deferred updates.
//!
//! A [`Policy`](crate::Policy) returns `Some` for each capability that it has.

use crate::{Duel, Observation, RosterError};

/// A policy that commits to batches of comparisons and adapts only between them. Reached by
/// [`Policy::batches`](crate::Policy::batches).
pub trait Batches {
    /// Number of the open batch, from 1; `None` while no batch is open.
    fn number(&self) -> Option<u32>;

    /// The pairs of the open batch in a fixed order; empty while no batch is open.
    fn pairs(&self) -> Vec<BatchPair>;
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
