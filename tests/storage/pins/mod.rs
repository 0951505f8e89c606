//! The fold of an experiment never changes its meaning for experiments that run.
//!
//! A fixed script makes a log for every policy kind. The digest of the state that follows and the
//! next hundred selections are literals in `experiments.rs`. Saved states of every layout are kept
//! in `states/` and must restore. A failure here means that experiments which run would change:
//! give the new behaviour a new parameter or a new `format` instead of editing a literal.

mod experiments;
#[path = "../../../crates/dueling-bandits/tests/all/pins/pin.rs"]
mod pin;
#[path = "../../../crates/dueling-bandits/tests/all/pins/script.rs"]
mod script;
mod states;
