//! Texts in tables that people open with a spreadsheet.

use std::borrow::Cow;

/// `text` as a cell of a spreadsheet. A spreadsheet calculates a cell that starts with one of these
/// characters, and such a formula can send data elsewhere. Ids and segments come from callers, so
/// an apostrophe goes before them: the cell is then a text. A number stays as it is.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
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
        for formula in
            ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "-inf"]
        {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for text in ["", "bm25", "a=b", "-1", "+0.5", "-1e-3", "'=1", "0", " "] {
            assert_eq!(cell(text), text);
        }
    }
}
