//! The tests of the crate in one binary. One module per topic:
//!
//! - [`policies`]: the guarantees of each policy, and those that all policies share
//! - [`pins`]: states and selections that must never change
//! - [`preference`]: preference matrices, their files, and invariants
//! - [`winners`]: the winners of a matrix under each notion of best
//! - [`basics`]: pairs and covariances
//! - [`certificate`]: the stopping rule, against the capital of every truth
//! - [`claims`]: the claims beside the verdict
//! - [`coverage`]: how often the estimated regret holds the true one
//! - [`effect`]: the size of a certified difference, against the true one
//! - [`evidence`]: posteriors, confidence sequences, forecasts
//! - [`hardness`]: bounds on the regret of a matrix
//! - [`ladder`]: intervals of a pair from the evidence of the verdict
//! - [`orders`]: baskets of orders in place of clicks
//! - [`refuters`]: the capital that follows the leader
//! - [`regret_bounds`]: the bounds of regret, against every way the open pairs can turn out
//! - [`scores`]: answers that count by how much of a page decided
//! - [`reference`]: the policies as their papers print them, to compare with

mod basics;
mod certificate;
mod claims;
mod cohorts;
mod control_claims;
mod coverage;
mod effect;
mod evidence;
mod heavy_units;
mod ladder;
mod orders;
mod pins;
mod plan;
mod policies;
mod preference;
mod reference;
mod refuters;
mod regret_bounds;
mod scores;
mod verdict;
mod winners;
