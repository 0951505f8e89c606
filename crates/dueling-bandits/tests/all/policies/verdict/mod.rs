//! D-TS-Verdict: the duels of its reference form, the cheapest proof, and what its state may depend
//! on.

mod proof;
mod state;
mod trace;
