//! Selected duels without an outcome yet, as counts per pair.

use std::collections::BTreeMap;

/// The number of duels of each unordered pair that were selected and have no outcome yet. It is not
/// part of a policy's state, and may be empty.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    pairs: BTreeMap<(u16, u16), u32>,
    total: u64,
}

impl InFlight {
    /// Nothing in flight.
    pub fn new() -> Self {
        Self::default()
    }

    /// Duels of `{i, j}` in flight, in either order.
    pub fn of(&self, i: usize, j: usize) -> u32 {
        if self.total == 0 {
            return 0;
        }
        self.pairs.get(&key(i, j)).copied().unwrap_or(0)
    }

    /// Duels in flight over all pairs.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The pairs with duels in flight, `(i, j, count)` with `i ≤ j`, in ascending order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        self.pairs.iter().map(|(&(i, j), &count)| (usize::from(i), usize::from(j), count))
    }

    /// `count` more duels of `{i, j}` were selected.
    pub fn add(&mut self, i: usize, j: usize, count: u32) {
        if count > 0 {
            *self.pairs.entry(key(i, j)).or_insert(0) += count;
            self.total += u64::from(count);
        }
    }

    /// Up to `count` duels of `{i, j}` were answered or have expired.
    pub fn remove(&mut self, i: usize, j: usize, count: u32) {
        if let Some(open) = self.pairs.get_mut(&key(i, j)) {
            let gone = count.min(*open);
            *open -= gone;
            self.total -= u64::from(gone);
            if *open == 0 {
                self.pairs.remove(&key(i, j));
            }
        }
    }

    /// Remove all duels.
    pub fn clear(&mut self) {
        self.pairs.clear();
        self.total = 0;
    }
}

fn key(i: usize, j: usize) -> (u16, u16) {
    let (low, high) = if i < j { (i, j) } else { (j, i) };
    // rankers are at most MAX_RANKERS = 1024
    (low as u16, high as u16)
}
