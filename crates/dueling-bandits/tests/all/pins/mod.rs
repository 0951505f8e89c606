//! The fold of a policy never changes its meaning for experiments that run.
//!
//! A fixed script plays every policy kind. The digest of the state that follows and the next
//! hundred selections are literals in `policies.rs`. Saved states of every layout are kept in
//! `states/` and must restore. A failure here means that experiments which run would change: give
//! the new behaviour a new parameter or a new `format` instead of editing a literal.

mod pin;
mod policies;
mod script;
mod states;
