//! The meaning of a fold never changes for running experiments.
//!
//! A fixed script makes a log for every policy kind. The digest of the resulting state and the
//! next hundred selections, each folded before the next, are in the text files. From the first
//! release on, a failure means that running experiments would change: give the new behaviour a new
//! parameter or a new `format` instead of editing a file.

mod experiments;
#[allow(dead_code, reason = "the tests of the policies use more of it")]
#[path = "../../../crates/dueling-bandits/tests/all/pins/pin.rs"]
pub mod pin;
#[path = "../../../crates/dueling-bandits/tests/all/pins/script.rs"]
mod script;
