//! The position-based model: the user looks at each position with a probability of its own, and
//! clicks with a probability by grade.

use super::cascade::happens;
use super::table::{InvalidClickModel, Table};
use crate::coins::FastRng;

/// A position-based model (Craswell et al., "An experimental comparison of click position-bias
/// models", WSDM 2008): the user looks at position `k`, from 1, with probability `k^-η`,
/// independently of all other positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PositionBased {
    eta: f64,
    attraction: &'static [f64],
}

impl PositionBased {
    /// The model with the exponent `eta` and the click probabilities of a table.
    pub fn new(eta: f64, attraction: Table, grades: usize) -> Result<Self, InvalidClickModel> {
        Ok(Self { eta, attraction: attraction.probabilities(grades)?.0 })
    }

    pub(super) fn click(
        &self,
        grades: impl IntoIterator<Item = u8>,
        rng: &mut FastRng,
        clicks: &mut Vec<usize>,
    ) {
        for (position, grade) in grades.into_iter().enumerate() {
            let grade = usize::from(grade).min(self.attraction.len() - 1);
            let attention = libm::pow((position + 1) as f64, -self.eta);
            if happens(attention * self.attraction[grade], rng) {
                clicks.push(position);
            }
        }
    }
}
