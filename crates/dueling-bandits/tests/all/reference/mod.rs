//! Reference implementations: the policies as their papers print them. Every step computes every
//! bound from the counts, and draws every sample that the paper mentions.
//!
//! They are written from the papers and share no code with the crate's own implementations. Tests
//! compare the crate's policies with them, and the benches measure how much faster the policies
//! are.
#![allow(dead_code, reason = "each test binary and bench uses its part")]

pub mod ccb;
mod counts;
pub mod double_thompson;

pub use counts::*;
