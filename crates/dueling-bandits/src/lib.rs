//! Dueling-bandit policies, preference matrices, regret, and the evidence in win counts.
//!
//! Everything here is pure: no I/O but reading a matrix from a file, no clock, no async.
#![cfg_attr(not(feature = "serde"), allow(dead_code))] // saved states and their checks
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod capabilities;
pub mod counts;
pub mod duel;
pub mod evidence;
pub mod in_flight;
pub mod math;
pub mod outcome;
pub mod pairs;
pub mod pairwise_sampling;
pub mod parameters;
pub mod policies;
pub mod policy;
pub mod preference;
#[cfg(feature = "serde")]
mod read_parameters;
#[cfg(feature = "serde")]
mod read_spec;
pub mod registry;
mod rng;
pub mod roster;
mod saved_state;
pub mod tally;

pub use capabilities::{BatchPair, Batches, DeferredUpdates, MutableRoster};
pub use counts::CountsError;
pub use duel::{Duel, Observation, PairCounts, Selection};
pub use in_flight::InFlight;
pub use outcome::{Answer, Outcome, TieRule};
pub use parameters::{InvalidPolicy, Setup};
pub use policies::bounds::Bounds;
pub use policy::Policy;
pub use registry::PolicySpec;
pub use rng::{PolicyRng, step_rng};
pub use roster::{Roster, RosterError};
pub use tally::Tally;

/// Fewest rankers of an experiment.
pub const MIN_RANKERS: usize = 2;
/// Most rankers of an experiment.
pub const MAX_RANKERS: usize = 1024;
