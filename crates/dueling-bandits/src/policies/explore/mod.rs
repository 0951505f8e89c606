//! Explore, then exploit: policies that first identify the best ranker and then show it alone.
//!
//! The wrapper that makes a regret policy of an exploration is from Urvoy et al. (ICML 2013),
//! `Explore-then-exploit` (`algorithms-comparators.md` §11.4), and is the same for all of them:
//! explore with `δ = 1/T`; once the exploration accepts a ranker, show it alone for ever; when the
//! horizon `T` comes first, show the best empirical one.

mod borda;
mod confidence;
mod exploration;
mod explore_then_exploit;
mod largest_other;
mod pairs;
mod parameters;
pub mod pbr;
pub mod rank_el;
mod round_robin;
mod sampled;
pub mod savage;

pub use parameters::MAX_HORIZON;
