//! Which units take part in an experiment.
//!
//! A unit takes part if its *coin* is below the coverage. The coin is a number in [0, 1) that
//! depends on the hash of the unit alone. So a unit stays where it is, a lower coverage keeps a
//! part of the units, a higher one adds others, and nobody's preferences have a say.

use sha2::{Digest, Sha256};

use super::field_error::FieldError;
use super::spec::ExperimentSpec;

/// The coverage of an experiment that does not say otherwise: everybody.
pub const WHOLE_COVERAGE: f64 = 1.0;

/// The coins of a unit.
struct Coins {
    coverage: f64,
}

impl Coins {
    fn of(unit: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"rankduel enrolment\0");
        hash.update(unit.to_be_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let number = u64::from_be_bytes(std::array::from_fn(|index| hash[index]));
        Self { coverage: uniform(number) }
    }
}

/// The highest 53 bits as a number in [0, 1).
fn uniform(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

impl ExperimentSpec {
    /// The ranker that a page shows instead of a duel if it does not take part. A page without a
    /// unit takes part by `coin`, which is uniform in [0, 1).
    pub fn shown_outside(&self, unit: Option<u64>, coin: impl FnOnce() -> f64) -> Option<usize> {
        if self.coverage >= WHOLE_COVERAGE {
            return None;
        }
        let coin = unit.map_or_else(coin, |unit| Coins::of(unit).coverage);
        self.active_control().filter(|_| coin >= self.coverage)
    }

    fn active_control(&self) -> Option<usize> {
        let control = self.ranker_index(self.control.as_deref()?)?;
        (!self.is_retired(control)).then_some(control)
    }

    /// The error of the coverage.
    pub(super) fn coverage_error(&self) -> Option<FieldError> {
        let coverage = self.coverage;
        if !(coverage > 0.0 && coverage <= WHOLE_COVERAGE) {
            let detail = format!(
                "`coverage` is {coverage}; it must be above 0, up to 1: pause the experiment to \
                 show the control to everybody"
            );
            return Some(FieldError::new("/coverage", detail));
        }
        let has_control = self.active_control().is_some();
        (coverage < WHOLE_COVERAGE && !has_control).then(|| {
            let detail = format!(
                "`coverage` is {coverage}, and there is nothing to show to the others: name the \
                 `control`, or leave `coverage` out"
            );
            FieldError::new("/coverage", detail)
        })
    }
}

/// For the default of a field.
pub(super) fn whole_coverage() -> f64 {
    WHOLE_COVERAGE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn is_whole(coverage: &f64) -> bool {
    *coverage == WHOLE_COVERAGE
}
