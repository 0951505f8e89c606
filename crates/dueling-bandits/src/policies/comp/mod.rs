//! PCOMP, SCOMP and SCOMP2 (Agarwal, Ghuge & Nagarajan, "Batched Dueling Bandits", ICML 2022).
//!
//! Round `r` compares each of its pairs `c_r = ⌊q^r⌋` times, with `q = T^(1/B)`. It then removes
//! rankers that others clearly beat. The three algorithms differ in the pairs that a round compares
//! and in the rankers that may remove others: each has its own `PairSelection`. They share the
//! horizon, the batches, the evidence and the elimination rule.
//!
//! Where the paper is silent:
//!
//! - The horizon limits the comparisons that batches request. The last batch is cut to the rest of
//!   the horizon. Surplus comparisons, and self-duels while a batch waits for outcomes, do not
//!   count. Once the horizon is used up, the champion is shown alone forever.
//! - Removal never empties the field. If every ranker is clearly beaten (a cycle, so there is no
//!   Condorcet winner), the rankers that the fewest others beat remain. If some ranker is unbeaten,
//!   this is the paper's rule.
//! - The number of informative comparisons of a pair can differ from `c_r`: skipped ties make it
//!   smaller, surplus comparisons make it larger. The radius uses the actual number; at `c_r` it is
//!   the paper's radius. A pair without informative comparisons removes no ranker.
//! - The experiments of the paper replace the tests of lines 5, 6 and 8 by a divergence: any
//!   remaining ranker may then remove another on all evidence so far. The switch of SCOMP and
//!   SCOMP2 keeps its lines and the round's own estimates with every rule. Only their distance of
//!   2γ keeps the best ranker in `A*` (Lemma B.4).
//! - If no seed is left, the second phase starts with all remaining rankers.
//! - The evidence of all rounds is the tally, including all surplus comparisons. The evidence of
//!   one round is the results of its batches while they were open, including surplus comparisons of
//!   their pairs.

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
