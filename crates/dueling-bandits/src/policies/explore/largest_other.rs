//! The largest of the other values.

/// The two largest of at least two values. They give, for each value, the largest of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargestOther {
    at: usize,
    largest: f64,
    next: f64,
}

impl LargestOther {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self { at: 0, largest: f64::NEG_INFINITY, next: f64::NEG_INFINITY };
        values.enumerate().fold(none, |best, (at, value)| {
            if value > best.largest {
                Self { at, largest: value, next: best.largest }
            } else {
                Self { next: best.next.max(value), ..best }
            }
        })
    }

    /// The largest value except the one at index `i`.
    pub(super) fn than(&self, i: usize) -> f64 {
        if i == self.at { self.next } else { self.largest }
    }
}
