//! The comparators through their contract, one module per paper or topic.

#[allow(dead_code, reason = "shared with the tests of the served policies")]
#[path = "../../../dueling-bandits/tests/all/policies/arena.rs"]
mod arena;
mod btm;
mod contract;
mod ecw_plans;
mod ecw_rmed;
mod explore;
mod growth;
mod interleaved_filter;
mod merge;
mod reference;
mod rmed;
mod rucb;
mod selections;
mod self_sparring;
mod sparring;
#[allow(dead_code, reason = "shared with the tests of the served policies")]
#[path = "../../../dueling-bandits/tests/all/policies/support.rs"]
mod support;

use comparators::Comparator;
use dueling_bandits::Setup;

pub use dueling_bandits::Bandit as Player;

/// A comparator in its text form, before its first observation.
fn begin(text: &str, rankers: usize, seed: u64) -> Box<dyn Player> {
    let spec = Comparator::from_text(text, &[]).expect("a comparator");
    spec.validate(rankers).expect("valid parameters");
    spec.start(Setup { rankers, seed })
}
