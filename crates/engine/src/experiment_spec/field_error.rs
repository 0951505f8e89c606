//! Errors in the fields of a request.

use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;

/// An error in one field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer into the request.
    pub pointer: String,
    /// The fault, and the allowed values.
    pub detail: String,
}

impl FieldError {
    /// `detail` about the value at `pointer`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// The error of the number at `pointer`, unless the number is in this range. Its name is the last
/// part of the pointer.
pub(super) fn range_error<N: PartialOrd + Debug + Display>(
    pointer: &str,
    number: N,
    range: RangeInclusive<N>,
) -> Option<FieldError> {
    let name = pointer.rsplit('/').next().unwrap_or_default();
    let (least, most) = (range.start(), range.end());
    let detail = format!("`{name}` is {number:?}; it must be {least} to {most}");
    (!range.contains(&number)).then(|| FieldError::new(pointer, detail))
}

/// The error of the share at `pointer` unless it is in this range.
pub(super) fn share_error(
    pointer: &str,
    share: f64,
    range: RangeInclusive<f64>,
) -> Option<FieldError> {
    range_error(pointer, share, range).map(|FieldError { pointer, detail }| FieldError {
        pointer,
        detail: detail + &percent_hint(share),
    })
}

/// For an error about a share: how a number is written that may be meant as percent.
pub fn percent_hint(number: f64) -> String {
    if !(number > 1.0 && number <= 100.0) {
        return String::new();
    }
    let share = format!("{number}e-2").parse().unwrap_or(number / 100.0);
    format!("; {share} is {number} %")
}

/// Most errors that a refusal lists. A body of two megabytes can have a million.
pub const ERRORS_MAX: usize = 100;
/// Most characters of a caller's text in an error message.
const EXCERPT_CHARS: usize = 100;

/// The first [`ERRORS_MAX`] errors in a request. Errors beyond them are not kept.
#[derive(Debug, Default)]
pub struct FirstErrors(Vec<FieldError>);

impl FirstErrors {
    /// Add an error if there is room for it.
    pub fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.0.push(error);
        }
    }

    /// Add errors as long as there is room for them. Those beyond are not made.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.0.extend(errors.into_iter().take(ERRORS_MAX - self.0.len()));
    }

    /// Whether there is no room for another error.
    pub fn is_full(&self) -> bool {
        self.0.len() >= ERRORS_MAX
    }

    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The errors, in the order in which they were found.
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }
}

/// The beginning of a caller's text, for an error message.
pub fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}

/// `key` as one part of a JSON pointer.
pub fn pointer_part(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
