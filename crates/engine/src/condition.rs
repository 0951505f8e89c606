//! The condition of a loaded experiment: whether its state in memory can still be used.

use std::sync::atomic::{AtomicU8, Ordering};

/// Condition of a loaded experiment, from good to bad. It never improves: only loading the
/// experiment again gives one that serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Condition {
    /// The state in memory is the fold of the log.
    Serving,
    /// The state must be folded again: folding failed or panicked.
    Broken,
    /// The log changes the spec, and the loaded one does not have that change. Later entries are
    /// not folded here.
    Stale,
    /// The log in the database is shorter than the log that was folded here, or the experiment is
    /// gone.
    LogRegressed,
}

impl Condition {
    /// Whether entries can still be folded into the state.
    pub fn can_fold(self) -> bool {
        self < Self::Stale
    }
}

/// The condition of one loaded experiment.
#[derive(Debug)]
pub(crate) struct ConditionCell(AtomicU8);

impl ConditionCell {
    pub(crate) fn serving() -> Self {
        Self(AtomicU8::new(Condition::Serving as u8))
    }

    pub(crate) fn get(&self) -> Condition {
        match self.0.load(Ordering::Relaxed) {
            0 => Condition::Serving,
            1 => Condition::Broken,
            2 => Condition::Stale,
            _ => Condition::LogRegressed,
        }
    }

    /// Move to `condition` unless the current one is as bad or worse. Returns whether it moved.
    pub(crate) fn worsen_to(&self, condition: Condition) -> bool {
        self.0.fetch_max(condition as u8, Ordering::SeqCst) < condition as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_never_improves_and_each_step_is_reported_once() {
        use Condition::{Broken, LogRegressed, Serving, Stale};
        let cell = ConditionCell::serving();
        let mut steps = Vec::new();
        for to in [Serving, Broken, Broken, Stale, Broken, LogRegressed, LogRegressed] {
            steps.push((cell.worsen_to(to), cell.get()));
        }
        assert_eq!(
            steps,
            [
                (false, Serving),
                (true, Broken),
                (false, Broken),
                (true, Stale),
                (false, Stale),
                (true, LogRegressed),
                (false, LogRegressed),
            ]
        );
        assert!(Broken.can_fold() && !Stale.can_fold() && !LogRegressed.can_fold());
    }
}
