//! Reference implementations of comparators, as their papers print them. They share no code with
//! the crate's own.

#[allow(dead_code, reason = "shared with the tests of the served policies")]
#[path = "../../../../dueling-bandits/tests/all/reference/counts.rs"]
mod counts;
pub mod ecw_rmed;
pub mod rmed;
pub mod rucb;

pub use counts::*;
