//! Dueling bandits: learn which of `K` rankers is best from pairwise comparisons, and show bad
//! rankers as rarely as possible while learning.
//!
//! A dueling-bandit *policy* repeatedly selects two rankers (arms), observes which of them wins,
//! and learns from it. *Regret* measures how much worse the selected rankers were than the best
//! one.
//!
//! ```
//! use dueling_bandits::preference::{PreferenceMatrix, Regret};
//! use dueling_bandits::{InFlight, Outcome, PolicySpec, Setup, step_rng};
//! use rand::RngExt;
//!
//! let matrix = PreferenceMatrix::named("arxiv-6").expect("a known name")?; // P(i beats j)
//! let spec = PolicySpec::DoubleThompsonPlus(Default::default());
//! let mut policy = spec.start(Setup { rankers: matrix.rankers(), seed: 1 });
//! let (mut appearances, mut rng) = (vec![0; matrix.rankers()], step_rng(1, 0));
//! for _ in 0..20_000 {
//!     let selection = policy.select(&InFlight::new(), &mut rng);
//!     let (i, j) = (selection.duel.first, selection.duel.second);
//!     let first_wins = rng.random_bool(matrix.win_probability(i, j));
//!     let outcome = if first_wins { Outcome::First } else { Outcome::Second };
//!     if i == j {
//!         policy.observe_self_duels(i, 1);
//!     } else {
//!         policy.observe(&selection.observed(outcome));
//!     }
//!     appearances[i] += 1;
//!     appearances[j] += 1;
//! }
//! let regret = Regret::copeland(&matrix);
//! assert_eq!(policy.champion(), matrix.copeland_winners()[0]);
//! assert!(regret.of_appearances(&appearances) < regret.of_uniform_pairs(20_000) / 5.0);
//! # Ok::<(), dueling_bandits::preference::InvalidName>(())
//! ```
//!
//! # Overview
//!
//! | for | see |
//! | --- | --- |
//! | the policies, with their papers and assumptions | [`PolicySpec`], [`policies`] |
//! | the contract of a policy | [`Policy`], [`parameters`] |
//! | true preferences, winners and regret | [`preference`] |
//! | confidence, posterior probabilities and forecasts from win counts | [`evidence`] |
//! | what a team signs beside the winner: claims with an error | [`claims`] |
//!
//! # Guarantees
//!
//! - A policy is deterministic: the same parameters, seed and observations give the same state on
//!   every machine. [`Policy::select`] only reads the state, and draws from the caller's generator.
//! - Outcomes may come late, in any order, or never. [`InFlight`] tells a policy what it waits for.
//! - There is no I/O except [`PreferenceMatrix::load`](preference::PreferenceMatrix::load), no
//!   clock, no global state, no `unsafe`.
//!
//! # Sources
//!
//! Comments give steps and sections of `crates/dueling-bandits/algorithms.md` and of
//! `crates/lab/notes/comparators.md` in the repository. These documents give every policy step by
//! step, and point out where a paper is silent or wrong.
//!
//! This crate uses no other crate of the workspace. Start reading with [`Policy`], then
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
pub use policy::{BatchPair, BatchProgress, Batches, Policy, VerdictPlanning};
pub use registry::PolicySpec;
pub use rng::{PolicyRng, step_rng};
pub use roster::{Roster, RosterError};
pub use tally::Tally;

/// Fewest rankers that can duel.
pub const MIN_RANKERS: usize = 2;
/// Most rankers of a policy or a preference matrix.
pub const MAX_RANKERS: usize = 1024;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
