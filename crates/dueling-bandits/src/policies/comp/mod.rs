//! PCOMP, SCOMP and SCOMP2 (Agarwal, Ghuge & Nagarajan, "Batched Dueling Bandits", ICML 2022): what
//! the three share.
//!
//! A round `r` compares pairs `c_r = ⌊q^r⌋` times each, `q = T^(1/B)`, and removes rankers that
//! others clearly beat. The three differ in which pairs a round compares and who may remove whom:
//! one `PairSelection` each. Here are the horizon, the batches, the evidence and the rule that
//! calls it clear.
//!
//! Where the paper is silent:
//! - The horizon counts the comparisons that batches ask for. The last batch is cut to what is
//!   left. Self-duels while a batch waits and surplus comparisons are outside it. When it is used
//!   up the champion is shown alone, for ever.
//! - Removal never empties the field: where every ranker is clearly beaten (a cycle: there is no
//!   Condorcet winner), those that the fewest beat stay. Otherwise that is the paper's rule, as the
//!   fewest is then none.
//! - A pair has as many comparisons that say something as it has; skipped ties make them fewer than
//!   `c_r`, surplus ones more. The radius goes by that number and is the paper's where it is `c_r`.
//!   A pair with none removes nobody.
//! - Overall evidence is the tally, every surplus comparison included. Evidence of one round is
//!   what its batches learnt while they were open, surplus comparisons of their pairs included.

mod batched;
mod evidence;
mod field;
mod pair_selection;
mod parameters;
pub mod pcomp;
pub mod scomp;
pub mod scomp2;
mod standing;

pub use evidence::{Elimination, Estimates};
pub use parameters::MAX_HORIZON;
