//! The policies of other papers, to compare the served ones with in simulations.
//!
//! A comparator selects duels, learns from their outcomes and recommends a ranker. It is never
//! served: its state cannot be saved, its rankers cannot change, and no API describes it. Each
//! module is one paper; the step numbers in the comments are those of `lab/notes/comparators.md`.
//!
//! Start with [`Bandit`](dueling_bandits::Bandit), the contract that comparators and served policies
//! share in a simulation, and [`registry`], the list of kinds. [`rucb`] is a short example. [`Spec`]
//! reads both sorts of policies by name, and [`RunSeeds`] gives the random streams of a simulated
//! run. [`environment`] has its searchers, and [`feedback`] how their answers reach a policy.
//!
//! This crate uses `dueling-bandits`, and no other crate of the workspace.
//!
//! ```
//! use comparators::Comparator;
//! use dueling_bandits::{InFlight, Outcome, Setup, step_rng};
//!
//! let spec = Comparator::from_text("rucb:alpha=0.6", &[])?;
//! let mut policy = spec.start(Setup { rankers: 3, seed: 1 });
//! let mut rng = step_rng(1, 0);
//! for _ in 0..500 {
//!     let selection = policy.select(&InFlight::new(), &mut rng);
//!     let lower_is_first = selection.duel.first < selection.duel.second;
//!     // a lower ranker always wins
//!     let outcome = if lower_is_first { Outcome::First } else { Outcome::Second };
//!     policy.observe_shown(selection, outcome);
//! }
//! assert_eq!(policy.champion(), 0);
//! # Ok::<(), dueling_bandits::InvalidPolicy>(())
//! ```

pub mod btm;
mod coin;
pub mod ecw_rmed;
pub mod environment;
pub mod feedback;
pub mod interleaved_filter;
pub mod merge;
mod parameters;
pub mod pbr;
pub mod rank_el;
pub mod rcs;
pub mod registry;
pub mod rmed;
pub mod rucb;
mod seeds;
pub mod self_sparring;
pub mod sparring;
mod spec;
mod ucb;

pub use parameters::Parameters;
pub use registry::Comparator;
pub use seeds::{RunSeeds, fingerprint};
pub use spec::{Own, Spec};
