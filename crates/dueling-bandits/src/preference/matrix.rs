//! The checked `K × K` matrix of `P[i][j]`, the probability that ranker `i` beats ranker `j`.

use crate::{MAX_RANKERS, MIN_RANKERS};

/// How far `P[i][j] + P[j][i]` may be from 1, and `P[i][i]` from 1/2.
pub const TOLERANCE: f64 = 1e-9;

/// `P` of the papers: `P[i][j] + P[j][i] = 1` and `P[i][i] = 1/2`, both within [`TOLERANCE`]; 2 to
/// 1024 rankers.
///
/// ```
/// use dueling_bandits::preference::PreferenceMatrix;
///
/// let matrix = PreferenceMatrix::from_rows(&[
///     vec![0.5, 0.6, 0.7],
///     vec![0.4, 0.5, 0.8],
///     vec![0.3, 0.2, 0.5],
/// ])?;
/// assert_eq!(matrix.condorcet_winner(), Some(0));
/// assert_eq!(matrix.copeland_scores(), [2, 1, 0]);
/// # Ok::<(), dueling_bandits::preference::InvalidMatrix>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PreferenceMatrix {
    rankers: usize,
    /// Row-major; the row is the winner.
    entries: Vec<f64>,
}

/// Numbers that are no preference matrix. Rows and columns are counted from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidMatrix {
    /// No rows.
    #[error("it is empty; {MIN_RANKERS} to {MAX_RANKERS} rows of as many numbers are needed")]
    Empty,
    /// A single ranker.
    #[error("it has one ranker; a duel needs at least {MIN_RANKERS}")]
    OneRanker,
    /// More than [`MAX_RANKERS`].
    #[error("it has more than {MAX_RANKERS} {what}; at most {MAX_RANKERS} rankers are allowed")]
    TooMany {
        /// `rows` or `columns`.
        what: &'static str,
    },
    /// A row of another length than the number of rows.
    #[error("it is not square: row {row} has {columns} columns, but {expected} are needed")]
    NotSquare {
        /// The row.
        row: usize,
        /// Its length.
        columns: usize,
        /// The expected length.
        expected: usize,
    },
    /// Fewer or more rows than columns.
    #[error("it is not square: it has {rows} rows of {columns} columns")]
    RowCount {
        /// Number of rows.
        rows: usize,
        /// Number of columns of each.
        columns: usize,
    },
    /// An entry that is not a probability.
    #[error("row {row}, column {column} is {value}; it must be a probability from 0 to 1")]
    OutOfRange {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// A diagonal entry other than 1/2.
    #[error("row {row}, column {row} is {value}; a ranker against itself must be 0.5")]
    Diagonal {
        /// The row.
        row: usize,
        /// The entry.
        value: f64,
    },
    /// Two entries that do not add up to 1.
    #[error(
        "row {row}, column {column} is {value} and row {column}, column {row} is {mirrored}; \
         they must add up to 1, but make {}", value + mirrored
    )]
    NotComplementary {
        /// The row of the upper entry.
        row: usize,
        /// Its column.
        column: usize,
        /// The upper entry.
        value: f64,
        /// The mirrored entry.
        mirrored: f64,
    },
}

impl PreferenceMatrix {
    /// A matrix from its rows.
    pub fn from_rows(rows: &[Vec<f64>]) -> Result<Self, InvalidMatrix> {
        let rankers = check_size(rows.len())?;
        for (index, row) in rows.iter().enumerate() {
            if row.len() != rankers {
                return Err(InvalidMatrix::NotSquare {
                    row: index + 1,
                    columns: row.len(),
                    expected: rankers,
                });
            }
        }
        Self::from_entries(rankers, rows.concat())
    }

    /// A matrix from the win probabilities `win(i, j)` of the pairs `i < j`.
    pub fn from_pairs(
        rankers: usize,
        mut win: impl FnMut(usize, usize) -> f64,
    ) -> Result<Self, InvalidMatrix> {
        let rankers = check_size(rankers)?;
        let mut entries = vec![0.5; rankers * rankers];
        for i in 0..rankers {
            for j in i + 1..rankers {
                let p = win(i, j);
                entries[i * rankers + j] = p;
                entries[j * rankers + i] = 1.0 - p;
            }
        }
        Self::from_entries(rankers, entries)
    }

    /// A matrix from row-major entries. The caller has checked `rankers`.
    fn from_entries(rankers: usize, entries: Vec<f64>) -> Result<Self, InvalidMatrix> {
        let at = |i: usize, j: usize| entries[i * rankers + j];
        for i in 0..rankers {
            for j in 0..rankers {
                let value = at(i, j);
                if !(0.0..=1.0).contains(&value) {
                    return Err(InvalidMatrix::OutOfRange { row: i + 1, column: j + 1, value });
                }
            }
        }
        for i in 0..rankers {
            if (at(i, i) - 0.5).abs() > TOLERANCE {
                return Err(InvalidMatrix::Diagonal { row: i + 1, value: at(i, i) });
            }
            for j in i + 1..rankers {
                let (value, mirrored) = (at(i, j), at(j, i));
                if (value + mirrored - 1.0).abs() > TOLERANCE {
                    return Err(InvalidMatrix::NotComplementary {
                        row: i + 1,
                        column: j + 1,
                        value,
                        mirrored,
                    });
                }
            }
        }
        Ok(Self { rankers, entries })
    }

    /// Number of rankers, `K`.
    pub fn rankers(&self) -> usize {
        self.rankers
    }

    /// `P[i][j]`.
    pub fn win_probability(&self, i: usize, j: usize) -> f64 {
        self.entries[i * self.rankers + j]
    }

    /// `P[i][j] - 1/2`; exactly antisymmetric, also where the two entries are rounded.
    pub fn margin(&self, i: usize, j: usize) -> f64 {
        (self.win_probability(i, j) - self.win_probability(j, i)) / 2.0
    }

    /// Whether `P[i][j] > 1/2`; at most one of `i` and `j` beats the other.
    pub fn beats(&self, i: usize, j: usize) -> bool {
        self.win_probability(i, j) > self.win_probability(j, i)
    }

    /// The rows, one slice of `K` entries each.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.entries.chunks_exact(self.rankers)
    }

    /// The matrix among the `chosen` rankers, in that order: `result[a][b] =
    /// P[chosen[a]][chosen[b]]`. A permutation of all rankers renames them. Panics on an index
    /// outside `0..K`.
    pub fn restricted_to(&self, chosen: &[usize]) -> Result<Self, InvalidMatrix> {
        let rankers = check_size(chosen.len())?;
        let entries = chosen
            .iter()
            .flat_map(|&i| chosen.iter().map(move |&j| self.win_probability(i, j)))
            .collect();
        Self::from_entries(rankers, entries)
    }
}

/// The number of rankers, if a matrix can have that many.
fn check_size(rankers: usize) -> Result<usize, InvalidMatrix> {
    match rankers {
        0 => Err(InvalidMatrix::Empty),
        1 => Err(InvalidMatrix::OneRanker),
        MIN_RANKERS..=MAX_RANKERS => Ok(rankers),
        _ => Err(InvalidMatrix::TooMany { what: "rows" }),
    }
}
