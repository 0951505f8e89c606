//! Explore, then exploit: policies that first identify the best ranker and then show it alone.
//!
//! One wrapper turns each exploration into a policy with low regret: `Explore-then-exploit` of
//! Urvoy et al. (ICML 2013; `algorithms-comparators.md` §11.4). It explores with `δ = 1/T`. Once
//! the exploration accepts a ranker, it shows this ranker alone forever. If the horizon `T` comes
//! first, it shows the best empirical ranker.

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
