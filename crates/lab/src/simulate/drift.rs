//! Preferences that change while an experiment runs.

use dueling_bandits::preference::PreferenceMatrix;

/// A move of all preferences, linear in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    to: PreferenceMatrix,
    first: u64,
    last: u64,
}

impl Drift {
    /// Preferences that leave their first values after step `first`, move linearly, and stay at
    /// those of `to` from step `last` on. If both are the same, they jump after that step. `to` has
    /// as many rankers as the first preferences.
    pub fn new(to: PreferenceMatrix, first: u64, last: u64) -> Self {
        Self { to, first, last: last.max(first) }
    }

    /// The preferences at `step`, if they differ from those of the step before. `from` has the
    /// first values, for as many rankers.
    pub fn changed(&self, from: &PreferenceMatrix, step: u64) -> Option<PreferenceMatrix> {
        if step <= self.first || step > self.last.max(self.first + 1) {
            return None;
        }
        let length = (self.last - self.first).max(1) as f64;
        let share = (step - self.first) as f64 / length;
        // a pair with equal ends must stay exactly there
        let between = |i, j| {
            let (p, q) = (from.win_probability(i, j), self.to.win_probability(i, j));
            (p + share * (q - p)).clamp(0.0, 1.0)
        };
        let matrix = PreferenceMatrix::from_pairs(from.rankers(), between);
        Some(matrix.expect("as many rankers, and probabilities"))
    }
}
