//! The cascade model: the user reads from the top, clicks with a probability by grade, and may
//! stop.

use rand::RngExt;

use super::table::{InvalidClickModel, Table};
use crate::coins::FastRng;

/// When a user may stop reading. Published simulators differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StopOn {
    /// After a click.
    #[default]
    Click,
    /// After every document read, clicked or not.
    Examine,
}

/// A cascade model for documents of a known number of grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cascade {
    click: &'static [f64],
    stop: &'static [f64],
    stop_on: StopOn,
}

impl Cascade {
    /// The model with the probabilities of this table.
    pub fn new(table: Table, stop_on: StopOn, grades: usize) -> Result<Self, InvalidClickModel> {
        let (click, stop) = table.probabilities(grades)?;
        Ok(Self { click, stop, stop_on })
    }

    pub(super) fn click(
        &self,
        grades: impl IntoIterator<Item = u8>,
        rng: &mut FastRng,
        clicks: &mut Vec<usize>,
    ) {
        for (position, grade) in grades.into_iter().enumerate() {
            let grade = usize::from(grade).min(self.click.len() - 1);
            let clicked = happens(self.click[grade], rng);
            if clicked {
                clicks.push(position);
            }
            if (clicked || self.stop_on == StopOn::Examine) && happens(self.stop[grade], rng) {
                break;
            }
        }
    }
}

pub(super) fn happens(probability: f64, rng: &mut FastRng) -> bool {
    rng.random::<f64>() < probability
}
