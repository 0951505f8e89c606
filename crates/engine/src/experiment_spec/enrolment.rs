//! Which units take part in an experiment, and which of them see one ranker alone.
//!
//! A unit takes part if its *coin* is below the coverage. The coin is a number in [0, 1) that
//! depends on the hash of the unit alone, and on no preference. So a unit stays where it is: a
//! lower coverage keeps a part of the units, a higher one adds others. A second, independent coin
//! says whether the unit sees one ranker alone, and a third one which.

use sha2::{Digest, Sha256};

use super::field_error::{FieldError, percent_hint};
use super::spec::{ExperimentSpec, WHOLE_COVERAGE};
use dueling_bandits::claims::alone::Arm;

/// Largest share of units that see one ranker alone: more would leave too few for the duels.
const ALONE_MAX: f64 = 0.5;

/// The coins of a unit.
struct Coins {
    coverage: f64,
    alone: f64,
    arm: Arm,
}

impl Coins {
    fn of(unit: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"rankduel enrolment\0");
        hash.update(unit.to_be_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let number = |from| u64::from_be_bytes(std::array::from_fn(|index| hash[from + index]));
        let arm = if hash[16] < 128 { Arm::Leader } else { Arm::Control };
        Self { coverage: uniform(number(0)), alone: uniform(number(8)), arm }
    }
}

/// The arm of a unit that sees one ranker alone, as a share `alone` of the units do. `None` for the
/// other units, and for a page without a unit.
pub fn arm_of(alone: f64, unit: Option<u64>) -> Option<Arm> {
    let unit = unit.filter(|_| alone > 0.0)?;
    let coins = Coins::of(unit);
    (coins.alone < alone).then_some(coins.arm)
}

/// The highest 53 bits as a number in [0, 1).
fn uniform(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

impl ExperimentSpec {
    /// The ranker that a page shows instead of a duel; `None` if the page takes part. A page without
    /// a unit takes part by `coin`, which is uniform in [0, 1).
    pub fn shown_outside(&self, unit: Option<u64>, coin: impl FnOnce() -> f64) -> Option<usize> {
        if self.coverage >= WHOLE_COVERAGE {
            return None;
        }
        let coin = unit.map_or_else(coin, |unit| Coins::of(unit).coverage);
        self.active_control().filter(|_| coin >= self.coverage)
    }

    /// The control, if it takes part.
    pub fn active_control(&self) -> Option<usize> {
        let control = self.ranker_index(self.control.as_deref()?)?;
        (!self.is_retired(control)).then_some(control)
    }

    /// The error of the coverage.
    pub(super) fn coverage_error(&self) -> Option<FieldError> {
        let coverage = self.coverage;
        if !(coverage > 0.0 && coverage <= WHOLE_COVERAGE) {
            let detail = format!(
                "`coverage` is {coverage:?}; it must be above 0, up to 1{}: pause the experiment to \
                 show the control to everybody",
                percent_hint(coverage)
            );
            return Some(FieldError::new("/coverage", detail));
        }
        let has_control = self.active_control().is_some();
        (coverage < WHOLE_COVERAGE && !has_control).then(|| {
            let detail = format!(
                "`coverage` is {coverage:?}, and there is nothing to show to the others: name the \
                 `control`, or leave `coverage` out"
            );
            FieldError::new("/coverage", detail)
        })
    }

    /// The error of the share of units that see one ranker alone.
    pub(super) fn alone_error(&self) -> Option<FieldError> {
        let alone = self.alone;
        if !(0.0..=ALONE_MAX).contains(&alone) {
            let detail = format!(
                "`alone` is {alone:?}; it must be 0 to {ALONE_MAX}{}: the others are for the duels",
                percent_hint(alone)
            );
            return Some(FieldError::new("/alone", detail));
        }
        (alone > 0.0 && self.active_control().is_none()).then(|| {
            let detail = format!(
                "`alone` is {alone:?}, and there is nothing to compare the leader with: name the \
                 `control`, or leave `alone` out"
            );
            FieldError::new("/alone", detail)
        })
    }
}
