//! A policy folds the logs of running experiments in the same way in every version.
//!
//! A fixed script plays every policy kind. The digest of the resulting state and the next hundred
//! selections, each folded before the next, are in `policies.txt`. From the first release
//! on, a failure means that running experiments would change: give the new behaviour a new
//! parameter or a new `format`.

mod pin;
mod policies;
mod script;

pub use pin::every_policy;
