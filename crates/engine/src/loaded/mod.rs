//! One experiment in memory: its record, the fold of its log, and its open duels.

mod apart;
mod duels;
mod experiment;
mod folding;
mod open;
mod snapshot_schedule;

pub use experiment::{EndedBatch, LoadedExperiment, Process};
