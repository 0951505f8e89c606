//! D-TS-Verdict: the cheapest proof, and what its state may depend on.

mod proof;
mod state;
