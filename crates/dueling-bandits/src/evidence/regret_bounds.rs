//! Bounds of the Copeland regret so far that assume nothing about the preferences.
//!
//! A pair is *settled* once its interval of [`sequence`](super::sequence) excludes 1/2. With the
//! confidence of these intervals no pair is ever settled wrongly. Every other pair can go to either
//! ranker, or to neither if the two are even. The bounds are over all these ways.
//!
//! Let `w_i` be the settled wins of ranker `i`, `u_i` its unsettled pairs, `n_i` its appearances and
//! `T` the steps, half of all appearances. With final scores `s_i` and the best score `s*`, the
//! regret times `K - 1` is `T s* - Σ n_i s_i / 2`.
//!
//! - *Most.* If `a` has the best score, the regret is `T s_a - Σ n_i s_i / 2`. It is largest if `a`
//!   gets all its unsettled pairs, because `n_a ≤ 2 T`, and nobody gets the others. The largest of
//!   these over all `a` is reached: no other ranker has a larger score than the `a` that is chosen.
//! - *Least.* For each value `m` of `s*`, the wins of all rankers are at most what the unsettled
//!   pairs give, and those of one ranker at most `u_i` and `m - w_i`. Giving them to the rankers
//!   with most appearances first bounds the regret from below. The bound ignores which pair gives a
//!   win to whom, so the least may be out of reach.

use crate::Tally;
use crate::evidence::sequence::Sequences;
use crate::pairs::pairs_by_strips;

/// Least and largest regret.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegretBounds {
    /// The regret is at least this.
    pub low: f64,
    /// The regret is at most this.
    pub high: f64,
    /// Number of pairs that are not settled.
    pub unsettled: usize,
}

/// The bounds of the regret of these appearances, one count a ranker. All rankers of `tally` are
/// active; there are 2 or more.
pub fn regret_bounds(tally: &Tally, sequences: &Sequences, shown: &[u64]) -> RegretBounds {
    let rankers = tally.rankers();
    let (mut wins, mut open) = (vec![0_usize; rankers], vec![0_usize; rankers]);
    pairs_by_strips(rankers).for_each(|(i, j)| {
        if sequences.of(i, j).excludes_half(tally.wins(i, j), tally.wins(j, i)) {
            wins[if tally.leads(i, j) { i } else { j }] += 1;
        } else {
            open[i] += 1;
            open[j] += 1;
        }
    });
    let steps = shown.iter().sum::<u64>() as f64 / 2.0;
    let half_shown: Vec<f64> = shown.iter().map(|&count| count as f64 / 2.0).collect();
    let settled: f64 = half_shown.iter().zip(&wins).map(|(half, &wins)| half * wins as f64).sum();
    let most = (0..rankers)
        .map(|a| steps * (wins[a] + open[a]) as f64 - half_shown[a] * open[a] as f64 - settled)
        .fold(0.0, f64::max);

    let unsettled = open.iter().sum::<usize>() / 2;
    let mut by_shown: Vec<usize> = (0..rankers).collect();
    by_shown.sort_by_key(|&i| std::cmp::Reverse(shown[i]));
    let best_now = wins.iter().copied().max().unwrap_or(0);
    let least = (best_now..rankers)
        .map(|best| {
            let (mut left, mut given) = (unsettled, 0.0);
            for &i in &by_shown {
                let share = open[i].min(best - wins[i]).min(left);
                left -= share;
                given += half_shown[i] * share as f64;
            }
            steps * best as f64 - settled - given
        })
        .fold(f64::INFINITY, f64::min);
    let others = (rankers - 1) as f64;
    RegretBounds { low: least.max(0.0) / others, high: most / others, unsettled }
}
