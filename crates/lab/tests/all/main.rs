//! The tests of the crate in one binary.

mod balance;
mod letor;
