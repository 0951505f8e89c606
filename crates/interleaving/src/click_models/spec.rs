//! The choice of a click model, and the model itself.

use super::cascade::{Cascade, StopOn};
use super::position::PositionBased;
use super::table::{InvalidClickModel, Table};
use crate::coins::FastRng;
use crate::text::KindText;

/// A click model for any number of grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClickModelSpec {
    /// See [`Cascade`].
    Cascade {
        /// The click and stop probabilities.
        table: Table,
        /// When a user may stop reading.
        stop_on: StopOn,
    },
    /// See [`PositionBased`].
    PositionBased {
        /// How fast attention decreases: the user looks at position `k` (from 1) with probability
        /// `k^-eta`.
        eta: f64,
        /// The table with the click probabilities of documents that the user looks at.
        attraction: Table,
    },
}

/// A click model for documents with a known number of grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClickModel {
    /// See [`Cascade`].
    Cascade(Cascade),
    /// See [`PositionBased`].
    PositionBased(PositionBased),
}

impl ClickModelSpec {
    /// Reads a model from its command-line form: `perfect`, `navigational:stop_on=examine`, or
    /// `position-based:eta=1,attraction=informational`.
    pub fn from_text(text: &str) -> Result<Self, InvalidClickModel> {
        let invalid = |detail: String| Err(InvalidClickModel(detail));
        let KindText { kind, mut parameters } =
            KindText::parse(text).map_err(|error| InvalidClickModel(error.to_string()))?;
        let model = if kind == "position-based" {
            let eta = match parameters.remove("eta") {
                None => 1.0,
                Some(text) => match text.parse() {
                    Ok(eta) if (0.0..=10.0).contains(&eta) => eta,
                    _ => return invalid(format!("`eta` is {text}; it must be from 0 to 10")),
                },
            };
            let attraction =
                parameters.remove("attraction").map_or(Ok(Table::Navigational), Table::named)?;
            Self::PositionBased { eta, attraction }
        } else {
            let table = Table::named(kind)?;
            let stop_on = match parameters.remove("stop_on") {
                None | Some("click") => StopOn::Click,
                Some("examine") => StopOn::Examine,
                Some(other) => {
                    return invalid(format!("`stop_on` is `{other}`; it must be click or examine"));
                }
            };
            Self::Cascade { table, stop_on }
        };
        match parameters.keys().next() {
            Some(unknown) => invalid(format!("click model `{kind}` has no parameter `{unknown}`")),
            None => Ok(model),
        }
    }

    /// The command-line form with every parameter; [`ClickModelSpec::from_text`] reads it.
    pub fn text(&self) -> String {
        match self {
            ClickModelSpec::Cascade { table, stop_on } => {
                let stop_on = match stop_on {
                    StopOn::Click => "click",
                    StopOn::Examine => "examine",
                };
                format!("{}:stop_on={stop_on}", table.name())
            }
            ClickModelSpec::PositionBased { eta, attraction } => {
                format!("position-based:eta={eta},attraction={}", attraction.name())
            }
        }
    }

    /// This model for documents judged `0..grades`. There are tables for 2, 3 and 5 grades.
    pub fn for_grades(&self, grades: usize) -> Result<ClickModel, InvalidClickModel> {
        Ok(match *self {
            ClickModelSpec::Cascade { table, stop_on } => {
                ClickModel::Cascade(Cascade::new(table, stop_on, grades)?)
            }
            ClickModelSpec::PositionBased { eta, attraction } => {
                ClickModel::PositionBased(PositionBased::new(eta, attraction, grades)?)
            }
        })
    }
}

impl ClickModel {
    /// Simulates one user on a page of documents with these grades, and puts the clicked positions
    /// into `clicks`, in ascending order. A grade above the highest of the table counts as the
    /// highest.
    pub fn click(
        &self,
        grades: impl IntoIterator<Item = u8>,
        rng: &mut FastRng,
        clicks: &mut Vec<usize>,
    ) {
        clicks.clear();
        match self {
            ClickModel::Cascade(cascade) => cascade.click(grades, rng, clicks),
            ClickModel::PositionBased(position) => position.click(grades, rng, clicks),
        }
    }
}
