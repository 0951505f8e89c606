//! A policy folds the logs of running experiments in the same way in every version.
//!
//! A fixed script plays every policy kind. The digest of the resulting state and the next hundred
//! selections are literals in `policies.rs`. Saved states of every layout are in `states/` and must
//! restore.
//!
//! A failure here means that running experiments would change. Do not edit a literal; give the new
//! behaviour a new parameter or a new `format`.

mod pin;
mod policies;
mod script;
mod states;
