#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | for | see |
//! | --- | --- |
//! | the policies, with their papers and assumptions | [`PolicySpec`], [`policies`] |
//! | the contract of a policy | [`Bandit`], [`Policy`], [`parameters`] |
//! | true preferences, winners and regret | [`preference`] |
//! | confidence, posterior probabilities and forecasts from win counts | [`evidence`] |
//! | what a team signs beside the winner: claims with an error | [`claims`] |
//! | what people buy in place of what they click | [`orders`] |
//!
//! # Sources
//!
//! Comments give steps and sections of `crates/dueling-bandits/algorithms.md` and of
//! `crates/lab/notes/comparators.md` in the repository. These documents give every policy step by
//! step, and point out where a paper is silent or wrong.
//!
//! This crate uses no other crate of the workspace. Start reading with [`Bandit`], then
//! [`registry`] and [`policies::uniform`], the shortest policy.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod beta_sampling;
pub mod claims;
pub mod duel;
pub mod evidence;
pub mod forecast;
pub mod in_flight;
pub mod math;
pub mod orders;
pub mod outcome;
pub mod pairs;
pub mod pairwise_sampling;
pub mod parameters;
pub mod policies;
pub mod policy;
pub mod preference;
pub mod registry;
mod rng;
pub mod roster;
pub mod run;
mod saved_state;
pub mod tally;
pub mod win_probability;

pub use duel::{Duel, Observation, PairCounts, Selection};
pub use in_flight::InFlight;
pub use outcome::{Answer, Outcome, TieRule};
pub use parameters::{InvalidPolicy, Setup};
pub use policies::bounds::Bounds;
pub use policy::{Bandit, BatchPair, BatchProgress, Batches, Policy, VerdictPlanning};
pub use registry::PolicySpec;
pub use rng::{PolicyRng, step_rng};
pub use roster::{Roster, RosterError};
pub use tally::Tally;

/// Fewest rankers that can duel.
pub const MIN_RANKERS: usize = 2;
/// Most rankers of a policy or a preference matrix.
pub const MAX_RANKERS: usize = 1024;
