//! One experiment in memory: its record, the fold of its log, and its open duels.

mod duels;
mod experiment;
mod folding;
mod open;
mod shares;

pub use duels::Selected;
pub use experiment::{LoadedExperiment, Process};
