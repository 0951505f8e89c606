//! Tables for the tools of an analyst: a header and rows.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// One JSON object a line
    Jsonl,
}

impl TableFormat {
    /// A caller's text as a field of this format. Comma-separated values are for spreadsheets, JSON
    /// lines for programs, which need the text unchanged.
    pub(super) fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Csv => cell(text),
            Self::Jsonl => Cow::Borrowed(text),
        }
    }
}

/// A table that is being written.
pub(super) enum Table<'a> {
    Csv(Box<csv::Writer<&'a mut (dyn Write + Send)>>),
    Jsonl(&'a mut (dyn Write + Send)),
}

impl<'a> Table<'a> {
    /// Start a table whose rows have the fields `columns`, in this order.
    pub fn start(
        format: TableFormat,
        columns: &[&str],
        out: &'a mut (dyn Write + Send),
    ) -> Result<Self, anyhow::Error> {
        match format {
            TableFormat::Csv => {
                // by hand, so that a table without rows has its header
                let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
                csv.write_record(columns)?;
                Ok(Self::Csv(Box::new(csv)))
            }
            TableFormat::Jsonl => Ok(Self::Jsonl(out)),
        }
    }

    pub fn write(&mut self, row: &impl Serialize) -> Result<(), anyhow::Error> {
        match self {
            Self::Csv(csv) => Ok(csv.serialize(row)?),
            Self::Jsonl(out) => {
                serde_json::to_writer(&mut **out, row)?;
                Ok(out.write_all(b"\n")?)
            }
        }
    }

    pub fn end(self) -> Result<(), anyhow::Error> {
        match self {
            Self::Csv(mut csv) => Ok(csv.flush()?),
            Self::Jsonl(out) => Ok(out.flush()?),
        }
    }
}

/// `text` as a cell of a spreadsheet. A spreadsheet calculates a cell that starts with one of these
/// characters, and such a formula can send data elsewhere. Ids and segments come from callers, so
/// an apostrophe goes before them: the cell is then a text. A number stays as it is.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    const BEGINS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    let is_formula = text.starts_with(BEGINS);
    if is_formula && !text.parse().is_ok_and(f64::is_finite) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_texts_and_everything_else_stays() {
        for formula in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "＝1+1",
            "-",
            "-inf",
        ] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for text in ["", "bm25", "a=b", "-1", "+0.5", "-1e-3", "'=1", "0", " "] {
            assert_eq!(cell(text), text);
        }
    }
}
