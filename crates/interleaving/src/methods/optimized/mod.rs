//! Optimized interleaving (Radlinski and Craswell, "Optimized interleaving for online retrieval
//! evaluation", WSDM 2013).
//!
//! A list may be shown if each of its documents is the highest remaining one of either side. A
//! linear program finds a distribution over these lists with two properties:
//!
//! - A searcher who clicks at a random position prefers neither side, at every single position.
//! - Among such distributions, it reveals most about a searcher's preference.
//!
//! An [`Instance`] of the program depends only on how the two lists are permuted, not on the
//! documents. Its solution, a [`Plan`], can therefore be cached in a [`PlanCache`].
//!
//! Only the first [`Optimized::depth`] positions are optimized and earn credit; both lists are cut
//! to that depth. A team draft without credit fills the positions below. All pages of a duel have
//! one depth, so that they belong to one list.

mod drafting;
mod instance;
mod parameters;
mod plans;
mod program;
mod simplex;

pub use drafting::draft;
pub(crate) use drafting::{bounded, score};
pub use instance::{Instance, Plan};
pub use parameters::{MAX_DEPTH, MAX_LISTS, Optimized, RankCredit};
pub use plans::{PlanCache, Plans, Uncached};
