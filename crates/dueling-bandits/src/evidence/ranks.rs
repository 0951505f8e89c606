//! The range of each ranker's rank, at all times at once, from the evidence of the pairs.
//!
//! The rank of a ranker is 1 more than the number of rankers that beat it, with a probability above
//! 1/2. Where preferences are in order, this is its place in that order. A ranker is certain to be
//! below those that certainly beat it, and above those that it certainly beats.
//!
//! # Error
//!
//! For each of the `m = K (K - 1)` ordered pairs, `E(x≻y)` is an e-process of "x does not beat y"
//! ([`LeadEvidence`]). The claims "x beats y" are made in the order of their evidence, the largest
//! first, and the `r`-th needs `E(x≻y) ≥ (m - r + 1) / δ` (Holm, "A simple sequentially rejective
//! multiple test procedure", Scandinavian Journal of Statistics 1979). Let `t ≤ m` of the hypotheses
//! be true. With probability `1 - δ` none of them ever has evidence of `t / δ`, by Ville's
//! inequality and a union bound. Then none is rejected at any time: the first of them would be the
//! `r`-th claim for some `r ≤ m - t + 1`, which needs `t / δ` or more. So all ranges hold together at
//! all times, whichever policy chose the duels, and for pairs that are exactly even too.

use std::ops::RangeInclusive;

use crate::Tally;
use crate::evidence::lead::LeadEvidence;

/// The range of the rank of each ranker, from 1 for the best. All ranges hold at all times together
/// with probability `confidence`, which is in (0, 1). O(K² log K).
///
/// ```
/// use dueling_bandits::evidence::rank_intervals;
/// use dueling_bandits::{Duel, Outcome, Tally};
///
/// let mut tally = Tally::new(3);
/// tally.record_run(Duel::new(0, 1), Outcome::First, 40);
/// tally.record_run(Duel::new(0, 2), Outcome::First, 40);
/// assert_eq!(rank_intervals(&tally, 0.95), [1..=1, 2..=3, 2..=3]);
/// ```
pub fn rank_intervals(tally: &Tally, confidence: f64) -> Vec<RangeInclusive<usize>> {
    let rankers = tally.rankers();
    let evidence = LeadEvidence::over(0.0);
    let pairs = (0..rankers).flat_map(|i| (0..rankers).map(move |j| (i, j)));
    let mut claims: Vec<(f64, usize, usize)> = pairs
        .filter(|&(i, j)| tally.leads(i, j))
        .map(|(i, j)| (evidence.ln(tally.wins(i, j), tally.wins(j, i)), i, j))
        .collect();
    claims.sort_by(|one, other| other.0.total_cmp(&one.0));
    let ordered_pairs = rankers * rankers.saturating_sub(1);
    let (mut best, mut worst) = (vec![1; rankers], vec![rankers; rankers]);
    let ln_error = libm::log(1.0 - confidence);
    for (made, (ln, better, worse)) in claims.into_iter().enumerate() {
        if ln < libm::log((ordered_pairs - made) as f64) - ln_error {
            break;
        }
        worst[better] -= 1;
        best[worse] += 1;
    }
    best.into_iter().zip(worst).map(|(best, worst)| best..=worst).collect()
}
