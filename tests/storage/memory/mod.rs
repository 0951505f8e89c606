//! The memory of a process beside its folds: duels in flight, tokens and keys.

mod access;
mod open_duels;
mod tokens;
