//! Unordered pairs of rankers, numbered.

use super::Duel;

/// The pairs of `K` rankers, numbered row by row: (0,1), (0,2), …, (1,2), ….
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    pub(super) rankers: usize,
}

impl Pairs {
    /// The number of pairs.
    pub(super) fn count(self) -> usize {
        self.rankers * (self.rankers - 1) / 2
    }

    /// The number of `{i, j}`, in either order.
    pub(super) fn number(self, i: usize, j: usize) -> u32 {
        let (low, high) = (i.min(j), i.max(j));
        // at most MAX_RANKERS² / 2
        (self.row(low) + high - low - 1) as u32
    }

    /// The pair with this number, with its lower ranker first.
    pub(super) fn pair(self, number: u32) -> Duel {
        let number = number as usize;
        let (mut low, mut above) = (0, self.rankers - 1);
        while above - low > 1 {
            let middle = usize::midpoint(low, above);
            if self.row(middle) <= number { low = middle } else { above = middle }
        }
        Duel::new(low, low + 1 + number - self.row(low))
    }

    /// All pairs, in the order of their numbers.
    pub(super) fn all(self) -> impl Iterator<Item = Duel> {
        (0..self.rankers).flat_map(move |i| (i + 1..self.rankers).map(move |j| Duel::new(i, j)))
    }

    /// The number of (`low`, `low + 1`).
    fn row(self, low: usize) -> usize {
        low * (2 * self.rankers - low - 1) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_through_all_pairs() {
        for rankers in [2, 3, 4, 7, 60] {
            let pairs = Pairs { rankers };
            assert_eq!(pairs.all().count(), pairs.count());
            for (number, duel) in (0..).zip(pairs.all()) {
                assert_eq!(pairs.number(duel.first, duel.second), number);
                assert_eq!(pairs.number(duel.second, duel.first), number);
                assert_eq!(pairs.pair(number), duel);
            }
        }
    }
}
