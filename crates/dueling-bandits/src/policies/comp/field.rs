//! The rankers that are not eliminated yet.

use crate::Duel;
use crate::policies::comp::evidence::Evidence;

/// The rankers still in the race, ascending, and the round that the next pairs belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Field {
    /// `A`; never empty.
    pub(super) active: Vec<usize>,
    /// `r`, from 1: the exponent of `q`. PCOMP's `τ` is in it.
    pub(super) round: u32,
}

impl Field {
    /// Remove from `A` who is beaten beyond `threshold` by any of `beaters`.
    pub(super) fn eliminate(&mut self, beaters: &[usize], evidence: &Evidence<'_>, threshold: f64) {
        let losses =
            |&j: &usize| beaters.iter().filter(|&&i| evidence.margin(i, j) > threshold).count();
        let losses: Vec<usize> = self.active.iter().map(losses).collect();
        let fewest = losses.iter().copied().min();
        let mut losses = losses.into_iter();
        self.active.retain(|_| losses.next() == fewest);
    }

    /// The switch: go on with the rankers of `A` that are `better` than the seeds, unless `A` holds
    /// another that beats all of these beyond `threshold`, which includes that there are none. `τ =
    /// r`: the round is repeated.
    pub(super) fn switch(&mut self, better: Vec<usize>, evidence: &Evidence<'_>, threshold: f64) {
        let beats_all = |i: &usize| better.iter().all(|&j| evidence.margin(*i, j) > threshold);
        if !self.active.iter().any(|i| !better.contains(i) && beats_all(i)) {
            self.active = better;
        }
    }

    /// Every pair of `of`, which is ascending.
    pub(super) fn all_pairs(of: &[usize]) -> Vec<Duel> {
        let after = |at: usize| of[at + 1..].iter();
        (0..of.len()).flat_map(|at| after(at).map(move |&j| Duel::new(of[at], j))).collect()
    }
}
