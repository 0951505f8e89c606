//! The tests of the crate in one binary. One module per topic:
//!
//! - [`policies`]: the guarantees of each policy, and those that all policies share
//! - [`pins`]: states and selections that must never change
//! - [`preference`]: preference matrices and their files
//! - [`certificate`]: the stopping rule, against the capital of every truth
//! - [`evidence`]: posteriors, confidence sequences, forecasts
//! - [`reference`]: the policies as their papers print them, to compare with

mod certificate;
mod evidence;
mod pins;
mod policies;
mod preference;
mod reference;
mod verdict;
