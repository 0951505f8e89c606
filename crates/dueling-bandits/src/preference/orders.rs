//! The winners of the best orders of all rankers, for few rankers: Slater and Kemeny (Charon and
//! Hudry, "An updated survey on the linear ordering problem for weighted or unweighted
//! tournaments", Annals of Operations Research 2010).
//!
//! To find a best order is NP-hard. The dynamic program over sets of rankers (Held and Karp) takes
//! `O(K² 2^K)` time and `2^K` numbers, which is milliseconds at [`MAX_ORDERED`] rankers.

use crate::preference::matrix::PreferenceMatrix;
use crate::preference::winners::leaders;

/// The most rankers that are put in order.
pub const MAX_ORDERED: usize = 16;

impl PreferenceMatrix {
    /// The first rankers of the orders that agree with the most victories `P > 1/2`, in ascending
    /// order; `None` with more than [`MAX_ORDERED`] rankers.
    pub fn slater_winners(&self) -> Option<Vec<usize>> {
        self.first_in_order(|i, j| f64::from(u8::from(self.beats(i, j))))
    }

    /// The first rankers of the orders with the largest sum of `P[i][j]` over all `i` before `j`,
    /// in ascending order; `None` with more than [`MAX_ORDERED`] rankers.
    pub fn kemeny_winners(&self) -> Option<Vec<usize>> {
        self.first_in_order(|i, j| self.win_probability(i, j))
    }

    /// The first rankers of the orders with the largest sum of `gain(i, j)` over all `i` before
    /// `j`.
    fn first_in_order(&self, gain: impl Fn(usize, usize) -> f64) -> Option<Vec<usize>> {
        let k = self.rankers();
        (k <= MAX_ORDERED).then_some(())?;
        let all = (1_usize << k) - 1;
        // the largest sum of each set of rankers, by its bits
        let mut largest = vec![0.0; all + 1];
        let with_first = |largest: &[f64], set: usize, first: usize| -> f64 {
            let rest = set & !(1 << first);
            let before = (0..k).filter(|j| rest >> j & 1 == 1).map(|j| gain(first, j));
            largest[rest] + before.sum::<f64>()
        };
        for set in 1..=all {
            let members = (0..k).filter(|i| set >> i & 1 == 1);
            largest[set] = members.map(|i| with_first(&largest, set, i)).fold(0.0, f64::max);
        }
        Some(leaders(&(0..k).map(|i| with_first(&largest, all, i)).collect::<Vec<_>>()))
    }
}
