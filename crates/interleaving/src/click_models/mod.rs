//! Simulated users: who is shown a page of graded documents clicks as a published model says. Pure.
//!
//! - [`cascade`]: they read from the top, click by grade, and may leave (Chuklin, Markov and de
//!   Rijke, "Click Models for Web Search", 2015; the tables are those of Hofmann, Whiteson and de
//!   Rijke, "Fidelity, soundness, and efficiency of interleaved comparison methods", 2013, and
//!   Schuth et al., "Multileaved comparisons", 2014).
//! - [`position`]: they look at a position with a probability of its own.

use serde_json::{Map, Value};

use crate::FastRng;

pub mod cascade;
pub mod position;

pub use cascade::{Cascade, StopOn, Table};
pub use position::PositionBased;

/// Grades of a data set: documents are judged `0..grades`, better is higher. Tables exist for these
/// numbers.
pub const GRADES: [usize; 3] = [2, 3, 5];

/// A model of users, before it is known how many grades the documents have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Users {
    /// See [`cascade`].
    Cascade {
        /// How they click and leave.
        table: Table,
        /// After what they may leave.
        stop_on: StopOn,
    },
    /// See [`position`].
    PositionBased {
        /// How much attention falls off: position `k` (from 1) is looked at with probability
        /// `k^-eta`.
        eta: f64,
        /// Whose clicks they make on what they look at.
        attraction: Table,
    },
}

/// Users who read documents of a known number of grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClickModel {
    /// See [`cascade`].
    Cascade(Cascade),
    /// See [`position`].
    PositionBased(PositionBased),
}

/// A model of users that cannot be as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidClickModel(String);

impl Users {
    /// A model as it is written on a command line: `perfect`, `navigational:stop_on=examine`,
    /// `position-based:eta=1,attraction=informational`.
    pub fn from_text(text: &str) -> Result<Self, InvalidClickModel> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut values: Map<String, Value> = Map::new();
        for part in rest.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                InvalidClickModel(format!("`{part}` in `{text}` is not of the form name=value"))
            })?;
            if values.insert(name.trim().into(), value.trim().into()).is_some() {
                return Err(InvalidClickModel(format!(
                    "`{}` is given twice in `{text}`",
                    name.trim()
                )));
            }
        }
        let mut take = |name: &str| match values.remove(name) {
            Some(Value::String(value)) => Some(value),
            _ => None,
        };
        let users = if kind.trim() == "position-based" {
            let eta = match take("eta") {
                None => 1.0,
                Some(text) => match text.parse() {
                    Ok(eta) if (0.0..=10.0).contains(&eta) => eta,
                    _ => {
                        return Err(InvalidClickModel(format!(
                            "`eta` is {text}; it must be from 0 to 10"
                        )));
                    }
                },
            };
            let attraction =
                take("attraction").map_or(Ok(Table::Navigational), |name| Table::named(&name))?;
            Self::PositionBased { eta, attraction }
        } else {
            let table = Table::named(kind.trim())?;
            let stop_on = match take("stop_on").as_deref() {
                None | Some("click") => StopOn::Click,
                Some("examine") => StopOn::Examine,
                Some(other) => {
                    return Err(InvalidClickModel(format!(
                        "`stop_on` is `{other}`; it must be click or examine"
                    )));
                }
            };
            Self::Cascade { table, stop_on }
        };
        match values.keys().next() {
            Some(unknown) => {
                Err(InvalidClickModel(format!("users `{kind}` have no parameter `{unknown}`")))
            }
            None => Ok(users),
        }
    }

    /// What [`Users::from_text`] reads, with every parameter.
    pub fn text(&self) -> String {
        match self {
            Users::Cascade { table, stop_on } => {
                let stop_on = match stop_on {
                    StopOn::Click => "click",
                    StopOn::Examine => "examine",
                };
                format!("{}:stop_on={stop_on}", table.name())
            }
            Users::PositionBased { eta, attraction } => {
                format!("position-based:eta={eta},attraction={}", attraction.name())
            }
        }
    }

    /// These users, for documents judged `0..grades`. There are tables for 2, 3 and 5 grades.
    pub fn reading(&self, grades: usize) -> Result<ClickModel, InvalidClickModel> {
        Ok(match *self {
            Users::Cascade { table, stop_on } => {
                ClickModel::Cascade(Cascade::new(table, stop_on, grades)?)
            }
            Users::PositionBased { eta, attraction } => {
                ClickModel::PositionBased(PositionBased::new(eta, attraction, grades)?)
            }
        })
    }
}

impl ClickModel {
    /// Put into `clicks` the positions that one user clicks, in ascending order, on a page of
    /// documents with these grades. A grade above the highest of the table is read as the highest.
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
