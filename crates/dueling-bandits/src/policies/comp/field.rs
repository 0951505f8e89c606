//! The rankers that are not eliminated yet.

use crate::Duel;
use crate::policies::comp::evidence::Evidence;

/// The remaining rankers, and the round that the next pairs belong to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Field {
    /// `A`, ascending; never empty.
    pub(super) active: Vec<usize>,
    /// `r`, from 1: the exponent of `q`. It includes PCOMP's `τ`.
    pub(super) round: u32,
}

impl Field {
    /// Remove from `A` the rankers that any of `beaters` beats beyond `threshold`. If that is all
    /// of them, keep those with the fewest such losses.
    pub(super) fn eliminate(&mut self, beaters: &[usize], evidence: &Evidence<'_>, threshold: f64) {
        let losses =
            |&j: &usize| beaters.iter().filter(|&&i| evidence.margin(i, j) > threshold).count();
        let losses: Vec<usize> = self.active.iter().map(losses).collect();
        let fewest = losses.iter().copied().min();
        let mut losses = losses.into_iter();
        self.active.retain(|_| losses.next() == fewest);
    }

    /// Every pair of the rankers in `of`, which are ascending.
    pub(super) fn all_pairs(of: &[usize]) -> Vec<Duel> {
        let after = |at: usize| of[at + 1..].iter();
        (0..of.len()).flat_map(|at| after(at).map(move |&j| Duel::new(of[at], j))).collect()
    }
}
