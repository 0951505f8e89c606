//! Users who read from the top, click with a probability by grade, and may leave.

use rand::RngExt;

use super::{GRADES, InvalidClickModel};
use crate::FastRng;

/// A published table of click and stop probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Clicks what is relevant, reads everything.
    Perfect,
    /// Looks for one good answer.
    Navigational,
    /// Reads around.
    Informational,
    /// Hardly tells good from bad.
    AlmostRandom,
    /// Tells nothing.
    Random,
}

/// After what a user may leave. Published simulators differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StopOn {
    /// After a click.
    #[default]
    Click,
    /// After every document that was read, clicked or not.
    Examine,
}

impl Table {
    /// Every table's name.
    pub const NAMES: [(&'static str, Table); 5] = [
        ("perfect", Table::Perfect),
        ("navigational", Table::Navigational),
        ("informational", Table::Informational),
        ("almost-random", Table::AlmostRandom),
        ("random", Table::Random),
    ];

    /// The table of this name.
    pub fn named(name: &str) -> Result<Self, InvalidClickModel> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, table)| table).ok_or_else(
            || {
                let names = Self::NAMES.map(|(name, _)| name).join(", ");
                InvalidClickModel(format!(
                    "there are no users `{name}`; choose one of: {names}, position-based"
                ))
            },
        )
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, table)| *table == self).map_or("", |(name, _)| name)
    }

    /// Click and stop probabilities by grade.
    pub fn probabilities(
        self,
        grades: usize,
    ) -> Result<(&'static [f64], &'static [f64]), InvalidClickModel> {
        let at = GRADES.iter().position(|&known| known == grades).ok_or_else(|| {
            InvalidClickModel(format!(
                "there is no table for {grades} grades; documents have 2, 3 or 5 grades"
            ))
        })?;
        Ok(CLICK_AND_STOP[self as usize][at])
    }
}

type ByGrade = (&'static [f64], &'static [f64]);

/// By table, then by number of grades.
const CLICK_AND_STOP: [[ByGrade; 3]; 5] = [
    [
        (&[0.0, 1.0], &[0.0; 2]),
        (&[0.0, 0.5, 1.0], &[0.0; 3]),
        (&[0.0, 0.2, 0.4, 0.8, 1.0], &[0.0; 5]),
    ],
    [
        (&[0.05, 0.95], &[0.2, 0.9]),
        (&[0.05, 0.5, 0.95], &[0.2, 0.5, 0.9]),
        (&[0.05, 0.3, 0.5, 0.7, 0.95], &[0.2, 0.3, 0.5, 0.7, 0.9]),
    ],
    [
        (&[0.4, 0.9], &[0.1, 0.5]),
        (&[0.4, 0.7, 0.9], &[0.1, 0.3, 0.5]),
        (&[0.4, 0.6, 0.7, 0.8, 0.9], &[0.1, 0.2, 0.3, 0.4, 0.5]),
    ],
    [
        (&[0.4, 0.6], &[0.5; 2]),
        (&[0.4, 0.5, 0.6], &[0.5; 3]),
        (&[0.4, 0.45, 0.5, 0.55, 0.6], &[0.5; 5]),
    ],
    [(&[0.5; 2], &[0.0; 2]), (&[0.5; 3], &[0.0; 3]), (&[0.5; 5], &[0.0; 5])],
];

/// A cascade model for documents of a known number of grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cascade {
    click: &'static [f64],
    stop: &'static [f64],
    stop_on: StopOn,
}

impl Cascade {
    /// The model of this table.
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
