//! Preference matrices as CSV: one row a line, numbers separated by commas, no header.
//!
//! Blank lines and lines that start with `#` are skipped, and spaces around a number do not matter.
//! Rows and columns in messages are counted from 1; the line is named too, since skipped lines make
//! it differ from the row.

use std::io::{self, BufRead, Read, Write};

use super::{InvalidMatrix, PreferenceMatrix};
use crate::MAX_RANKERS;

/// Longest line that is read: 1024 numbers of 60 characters and more. What is longer is no matrix,
/// and reading stops there, so that memory stays bounded whatever the file.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Most lines that are read, skipped ones included.
const MAX_LINES: usize = 64 * 1024;

/// Why a CSV file is no preference matrix.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// An entry that is no number.
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
    /// A line that no row of a matrix can have.
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LongLine {
        /// The line in the file.
        line: usize,
    },
    /// More lines than any matrix needs.
    #[error("it has more than {MAX_LINES} lines")]
    ManyLines,
    /// Numbers that are no preference matrix.
    #[error(transparent)]
    Matrix(#[from] InvalidMatrix),
}

/// Read a matrix. Reads at most what a matrix of 1024 rankers can need.
pub fn read(mut input: impl BufRead) -> Result<PreferenceMatrix, CsvError> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
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
        rows.push(read_row(text, rows.len() + 1, line)?);
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

fn read_row(text: &str, row: usize, line: usize) -> Result<Vec<f64>, CsvError> {
    let mut numbers = Vec::new();
    for (index, part) in text.split(',').enumerate() {
        if index == MAX_RANKERS {
            return Err(InvalidMatrix::TooMany { what: "columns" }.into());
        }
        let part = part.trim();
        numbers.push(part.parse().map_err(|_| CsvError::NotANumber {
            row,
            column: index + 1,
            line,
            text: part.chars().take(40).collect(),
        })?);
    }
    Ok(numbers)
}

/// Write a matrix so that [`read`] gives back the very same numbers.
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
