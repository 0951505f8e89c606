//! Errors in the fields of a request.

/// An error in one field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer into the request.
    pub pointer: String,
    /// What is wrong and what is allowed.
    pub detail: String,
}

impl FieldError {
    /// `detail` about the value at `pointer`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// `key` as one part of a JSON pointer.
pub fn pointer_part(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
