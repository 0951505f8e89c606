//! Preference matrices as CSV: one row a line, numbers separated by commas.
//!
//! The first line may be a header with the names of the rankers. Then each row may begin with a
//! name too: if the header has an empty first cell, or one cell more than there are rows. Names may
//! be quoted, and may look like numbers. [`read_named`] gives those of the header.
//!
//! Blank lines, lines that start with `#`, and spaces around numbers are ignored. A line that starts
//! with `#` and has as many cells as the header is a row. Messages count
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
    #[error(
        "row {row}, column {column} (line {line}) is `{text}`, which is not a number{}",
        if text.contains(';') { ": write commas between entries, and decimal points" } else { "" }
    )]
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
    /// Text in another encoding.
    #[error("it is not UTF-8, but looks like UTF-16: save it as UTF-8")]
    Utf16,
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
pub fn read(input: impl BufRead) -> Result<PreferenceMatrix, CsvError> {
    read_named(input).map(|(matrix, _)| matrix)
}

/// The same with the names of the header, one for each ranker; `None` without a header, and where it
/// has fewer.
pub fn read_named(
    mut input: impl BufRead,
) -> Result<(PreferenceMatrix, Option<Vec<String>>), CsvError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut header: Option<Header> = None;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.contains(&0) {
            return Err(CsvError::Utf16);
        }
        if bytes.len() > MAX_LINE_BYTES {
            return Err(CsvError::LongLine { line });
        }
        if line > MAX_LINES {
            return Err(CsvError::ManyLines);
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        let columns = cells(text).count();
        let is_row = header.as_ref().is_some_and(|it| it.cells.len() == columns && columns > 1);
        if text.is_empty() || (text.starts_with('#') && !is_row) {
            continue;
        }
        if rows.len() == MAX_RANKERS {
            return Err(InvalidMatrix::TooMany { what: "rows" }.into());
        }
        if rows.is_empty() && header.is_none() && is_header(text) {
            header = Some(Header {
                cells: cells(text).map(|cell| without_quotes(cell).to_owned()).collect(),
                is_first_empty: unquoted(text).is_empty(),
            });
            continue;
        }
        rows.push(read_row(text, rows.len() + 1, line, header.is_some())?);
        let expected = rows[0].rest.len() + 1;
        if columns != expected {
            return Err(InvalidMatrix::NotSquare { row: rows.len(), columns, expected }.into());
        }
    }
    let cells = rows.first().map_or(0, |row| row.rest.len() + 1);
    let is_named = header.as_ref().is_some_and(|header| {
        header.is_first_empty || cells == header.cells.len() + 1 || cells == rows.len() + 1
    });
    let numbers = |Row { first, mut rest }: Row| {
        if !is_named {
            rest.insert(0, first?);
        }
        Ok(rest)
    };
    let rows = rows.into_iter().map(numbers).collect::<Result<Vec<_>, CsvError>>()?;
    match rows.first() {
        Some(first) if first.len() != rows.len() => {
            Err(InvalidMatrix::RowCount { rows: rows.len(), columns: first.len() }.into())
        }
        _ => {
            let matrix = PreferenceMatrix::from_rows(&rows)?;
            let names = header.and_then(|Header { mut cells, .. }| {
                let first = cells.len().checked_sub(matrix.rankers())?;
                Some(cells.split_off(first))
            });
            Ok((matrix, names))
        }
    }
}

/// The line with the names of the rankers.
struct Header {
    cells: Vec<String>,
    is_first_empty: bool,
}

/// A row. With a header, its first cell may be a name, which may look like a number.
struct Row {
    first: Result<f64, CsvError>,
    rest: Vec<f64>,
}

fn read_row(text: &str, row: usize, line: usize, has_header: bool) -> Result<Row, CsvError> {
    let number = |(index, cell): (usize, &str)| {
        cell.parse().map_err(|_| {
            let text = cell.chars().take(40).collect();
            CsvError::NotANumber { row, column: index + 1, line, text }
        })
    };
    let mut cells = cells(text).enumerate();
    let first = cells.next().map_or(Ok(0.0), number);
    if !has_header && let Err(error) = first {
        return Err(error);
    }
    let rest = cells.by_ref().take(MAX_RANKERS).map(number).collect::<Result<Vec<_>, _>>()?;
    if cells.next().is_some() || (!has_header && rest.len() == MAX_RANKERS) {
        return Err(InvalidMatrix::TooMany { what: "columns" }.into());
    }
    Ok(Row { first, rest })
}

/// Whether a line names rankers: several cells, of which the first is no number, and the others are
/// not all probabilities.
fn is_header(line: &str) -> bool {
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|number| number.is_finite());
    let is_probability = |cell| number(cell).is_some_and(|number| (0.0..=1.0).contains(&number));
    let mut cells = cells(line);
    let first = cells.next().unwrap_or_default();
    let (mut others, is_first_empty) = (cells.peekable(), unquoted(line).is_empty());
    number(first).is_none()
        && others.peek().is_some()
        && (is_first_empty || !others.all(is_probability))
}

/// The first cell of a line, without quotes.
fn unquoted(line: &str) -> &str {
    without_quotes(cells(line).next().unwrap_or_default())
}

fn without_quotes(cell: &str) -> &str {
    cell.trim_matches('"')
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
