//! The choice of a click model, and the model itself.

use rand::RngExt;

use super::table::{InvalidClickModel, Table};
use crate::coins::FastRng;
use crate::text::KindText;

/// When a user may stop reading. Published simulators differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StopOn {
    /// After a click.
    #[default]
    Click,
    /// After every document read, clicked or not.
    Examine,
}

/// A click model for any number of grades.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClickModelSpec {
    /// The user reads from the top, clicks with a probability by grade, and may stop (Chuklin,
    /// Markov and de Rijke, "Click Models for Web Search", 2015).
    Cascade {
        /// The click and stop probabilities.
        table: Table,
        /// When a user may stop reading.
        stop_on: StopOn,
    },
    /// The user looks at each position with a probability of its own, independently of the others,
    /// and clicks with a probability by grade (Craswell et al., "An experimental comparison of
    /// click position-bias models", WSDM 2008).
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
pub struct ClickModel {
    spec: ClickModelSpec,
    /// By grade.
    click: &'static [f64],
    stop: &'static [f64],
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
        let (ClickModelSpec::Cascade { table, .. }
        | ClickModelSpec::PositionBased { attraction: table, .. }) = self;
        let (click, stop) = table.probabilities(grades)?;
        Ok(ClickModel { spec: *self, click, stop })
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
        let mut happens = |probability: f64| rng.random::<f64>() < probability;
        for (position, grade) in grades.into_iter().enumerate() {
            let grade = usize::from(grade).min(self.click.len() - 1);
            let attention = match self.spec {
                ClickModelSpec::Cascade { .. } => 1.0,
                ClickModelSpec::PositionBased { eta, .. } => libm::pow((position + 1) as f64, -eta),
            };
            let clicked = happens(attention * self.click[grade]);
            if clicked {
                clicks.push(position);
            }
            if let ClickModelSpec::Cascade { stop_on, .. } = self.spec
                && (clicked || stop_on == StopOn::Examine)
                && happens(self.stop[grade])
            {
                break;
            }
        }
    }
}
