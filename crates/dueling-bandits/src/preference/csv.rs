//! Preference matrices as CSV: one row a line, numbers separated by commas.
//!
//! The first line may be a header with the names of the rankers. Then each row may begin with a
//! name too. Names may be quoted; they are not read.
//!
//! Blank lines, lines that start with `#`, and spaces around numbers are ignored. Messages count
//! rows and columns from 1, and also give the line, which differs from the row where lines were
//! skipped.

use std::io::{self, BufRead, Read, Write};

use crate::MAX_RANKERS;
use crate::preference::matrix::{InvalidMatrix, PreferenceMatrix};

/// Longest line that is read: more than 1024 numbers of 60 characters. Bounds the memory for files
/// that are not a matrix.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Most lines that are read, including skipped ones.
const MAX_LINES: usize = 64 * 1024;

/// A CSV file that is not a preference matrix.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// An I/O error.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// An entry that is not a number.
    #[error("row {row}, column {column} (line {line}) is `{text}`, which is not a number")]
    NotANumber {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The line in the file.
        line: usize,
        /// The entry, cut short.
        text: String,
    },
    /// A line longer than any row of a matrix.
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LongLine {
        /// The line in the file.
        line: usize,
    },
    /// More lines than any matrix needs.
    #[error("it has more than {MAX_LINES} lines")]
    ManyLines,
    /// Numbers that are not a preference matrix.
    #[error(transparent)]
    Matrix(#[from] InvalidMatrix),
}

/// Read a matrix. Reads no more than a matrix of 1024 rankers can need.
///
/// ```
/// use dueling_bandits::preference::csv;
///
/// let matrix = csv::read("0.5, 0.7\n0.3, 0.5\n".as_bytes())?;
/// assert!(matrix.beats(0, 1));
/// # Ok::<(), csv::CsvError>(())
/// ```
pub fn read(mut input: impl BufRead) -> Result<PreferenceMatrix, CsvError> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut has_names = false;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() > MAX_LINE_BYTES {
            return Err(CsvError::LongLine { line });
        }
        if line > MAX_LINES {
            return Err(CsvError::ManyLines);
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if rows.len() == MAX_RANKERS {
            return Err(InvalidMatrix::TooMany { what: "rows" }.into());
        }
        if rows.is_empty() && !has_names && is_header(text) {
            has_names = true;
            continue;
        }
        rows.push(read_row(text, rows.len() + 1, line, has_names)?);
        let (columns, expected) = (rows[rows.len() - 1].len(), rows[0].len());
        if columns != expected {
            return Err(InvalidMatrix::NotSquare { row: rows.len(), columns, expected }.into());
        }
    }
    match rows.first() {
        Some(first) if first.len() != rows.len() => {
            Err(InvalidMatrix::RowCount { rows: rows.len(), columns: first.len() }.into())
        }
        _ => Ok(PreferenceMatrix::from_rows(&rows)?),
    }
}

fn read_row(text: &str, row: usize, line: usize, has_names: bool) -> Result<Vec<f64>, CsvError> {
    let mut numbers = Vec::new();
    for (index, cell) in cells(text).enumerate() {
        if numbers.len() == MAX_RANKERS {
            return Err(InvalidMatrix::TooMany { what: "columns" }.into());
        }
        match cell.parse() {
            Ok(number) => numbers.push(number),
            Err(_) if has_names && index == 0 => {} // the ranker's name
            Err(_) => {
                let text = cell.chars().take(40).collect();
                return Err(CsvError::NotANumber { row, column: index + 1, line, text });
            }
        }
    }
    Ok(numbers)
}

/// Whether a line names rankers: several cells, none of them a number.
fn is_header(line: &str) -> bool {
    cells(line).nth(1).is_some() && cells(line).all(|cell| cell.parse::<f64>().is_err())
}

/// The cells of a line, without the spaces around them. A comma within double quotes separates
/// nothing.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    line.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .map(str::trim)
}

/// Write a matrix. [`read`] gives back exactly the same numbers.
pub fn write(matrix: &PreferenceMatrix, mut output: impl Write) -> io::Result<()> {
    for row in matrix.rows() {
        for (j, entry) in row.iter().enumerate() {
            let comma = if j == 0 { "" } else { "," };
            write!(output, "{comma}{entry}")?;
        }
        writeln!(output)?;
    }
    Ok(())
}
