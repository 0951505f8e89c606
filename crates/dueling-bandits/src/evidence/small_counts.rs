//! Counts that take two bytes each; the excess of large ones is stored separately.

use std::collections::BTreeMap;

use crate::tally::widened;

/// A list of saturating `u32` counts. A count below 65,536 takes two bytes. Serialised as a plain
/// list of `u32`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "Vec<u32>")]
pub struct SmallCounts {
    /// The low 16 bits of each count.
    low: Vec<u16>,
    /// The high 16 bits of each count that has any, by index; never 0.
    carries: BTreeMap<usize, u16>,
}

impl SmallCounts {
    /// `len` counts of zero.
    pub fn new(len: usize) -> Self {
        Self { low: vec![0; len], carries: BTreeMap::new() }
    }

    /// Number of counts.
    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Whether there are no counts.
    pub fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    /// The count at index `at`. Panics if `at` is out of range.
    pub fn get(&self, at: usize) -> u32 {
        u32::from(self.carry(at)) << 16 | u32::from(self.low[at])
    }

    fn carry(&self, at: usize) -> u16 {
        self.carries.get(&at).copied().unwrap_or(0)
    }

    /// All counts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Add to the count at index `at`. Panics if `at` is out of range.
    pub fn add(&mut self, at: usize, more: u32) {
        let low = &mut self.low[at];
        match u16::try_from(more).ok().and_then(|more| low.checked_add(more)) {
            Some(sum) => *low = sum,
            None => self.set(at, self.get(at).saturating_add(more)),
        }
    }

    fn set(&mut self, at: usize, count: u32) {
        self.low[at] = count as u16;
        match (count >> 16) as u16 {
            0 => self.carries.remove(&at),
            carry => self.carries.insert(at, carry),
        };
    }

    /// Halve every count, rounding down.
    pub fn halve(&mut self) {
        let large: Vec<(usize, u32)> =
            self.carries.keys().map(|&at| (at, self.get(at) / 2)).collect();
        self.low.iter_mut().for_each(|low| *low /= 2);
        large.into_iter().for_each(|(at, half)| self.set(at, half));
    }

    /// Append `more` counts of zero.
    pub fn extend_by(&mut self, more: usize) {
        self.low.resize(self.low.len() + more, 0);
    }

    /// Treat the counts as a row-major `rankers × rankers` matrix and add a row and a column of
    /// zeros.
    pub fn widen(&mut self, rankers: usize) {
        self.low = widened(&self.low, rankers);
        let moved = |at: usize| at / rankers * (rankers + 1) + at % rankers;
        self.carries = self.carries.iter().map(|(&at, &carry)| (moved(at), carry)).collect();
    }
}

impl From<Vec<u32>> for SmallCounts {
    fn from(counts: Vec<u32>) -> Self {
        let mut small = Self::new(counts.len());
        counts.into_iter().enumerate().for_each(|(at, count)| small.set(at, count));
        small
    }
}

impl serde::Serialize for SmallCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
