//! The policies through their public API, one module per topic.

mod arena;
mod batch;
mod bounds;
mod ccb;
mod contract;
mod double_thompson;
mod explore;
mod growth;
mod in_flight;
mod pairwise_sampling;
mod parameters;
mod resume;
mod rosters;
mod savage;
mod scb;
mod support;
mod verdict;

use dueling_bandits::{PolicySpec, Setup};

pub use dueling_bandits::Policy as Player;

/// A policy in its text form, before its first observation.
fn begin(text: &str, rankers: usize, seed: u64) -> Box<dyn Player> {
    let spec = PolicySpec::from_text(text).expect("a policy");
    spec.validate(rankers).expect("valid parameters");
    spec.start(Setup { rankers, seed })
}
