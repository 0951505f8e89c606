//! Published tables of click and stop probabilities.

/// The numbers of grades that tables exist for. Documents are judged `0..grades`; a higher grade is
/// better.
pub const GRADES: [usize; 3] = [2, 3, 5];

/// Why a click model was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidClickModel(pub(super) String);

/// A published table of click and stop probabilities by grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Clicks relevant documents only, and reads everything.
    Perfect,
    /// Looks for one good document.
    Navigational,
    /// Reads several documents.
    Informational,
    /// Hardly distinguishes relevant from irrelevant documents.
    AlmostRandom,
    /// Clicks every document with the same probability.
    Random,
}

impl Table {
    /// Every table with its name.
    pub const NAMES: [(&'static str, Table); 5] = [
        ("perfect", Table::Perfect),
        ("navigational", Table::Navigational),
        ("informational", Table::Informational),
        ("almost-random", Table::AlmostRandom),
        ("random", Table::Random),
    ];

    /// The table with this name.
    pub fn named(name: &str) -> Result<Self, InvalidClickModel> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, table)| table).ok_or_else(
            || {
                let names = Self::NAMES.map(|(name, _)| name).join(", ");
                InvalidClickModel(format!(
                    "there is no click model `{name}`; choose one of: {names}, position-based"
                ))
            },
        )
    }

    /// The name of the table.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, table)| *table == self).map_or("", |(name, _)| name)
    }

    /// The click and the stop probabilities by grade, for this number of grades.
    pub fn probabilities(
        self,
        grades: usize,
    ) -> Result<(&'static [f64], &'static [f64]), InvalidClickModel> {
        let at = GRADES.iter().position(|&known| known == grades).ok_or_else(|| {
            InvalidClickModel(format!(
                "there is no table for {grades} grades; there are tables for 2, 3 and 5 grades"
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
