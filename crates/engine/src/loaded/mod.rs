//! One experiment in memory: its record, the fold of its log, and its open duels.

mod duels;
mod experiment;
mod folding;
mod issued;
mod open;

pub use duels::Chosen;
pub use experiment::{LoadedExperiment, Process};
