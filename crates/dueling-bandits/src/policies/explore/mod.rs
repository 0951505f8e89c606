//! Explore, then exploit: policies that first identify the best ranker and then show it alone.
//!
//! One wrapper turns each exploration into a policy with low regret: `Explore-then-exploit` of
//! Urvoy et al. (ICML 2013; `lab/notes/comparators.md` §11.3). It explores with `δ = 1/T`. Once
//! the exploration accepts a ranker, it shows this ranker alone forever. If the horizon `T` comes
//! first, it shows the best empirical ranker.

mod borda;
mod confidence;
mod explore_then_exploit;
mod parameters;
mod round_robin;
pub mod savage;

pub use confidence::{Interval, Intervals, Radius};
pub use explore_then_exploit::{Exploration, ExploreThenExploit};
pub use parameters::{ExplorationParameters, MAX_HORIZON};
pub use round_robin::RoundRobin;
