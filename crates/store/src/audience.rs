//! The audience of a page: a unit, and a segment of the traffic.

use std::fmt;

use arrayvec::ArrayString;
use serde::{Deserialize, Serialize};

use crate::label::label_fault;

/// Most bytes of a segment.
pub const MAX_SEGMENT_BYTES: usize = 32;

/// The audience of a page, as far as the caller says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// Hash of the unit: a user, a session or a device.
    pub unit: Option<u64>,
    /// The segment of the page.
    pub segment: Option<Segment>,
}

impl Audience {
    /// This audience, with its missing parts from `other`.
    pub fn or(self, other: Self) -> Self {
        Self { unit: self.unit.or(other.unit), segment: self.segment.or(other.segment) }
    }
}

/// The segment of a page: the part of the traffic that it belongs to, such as a device, a country
/// or a kind of query. The log keeps it with the answer, so that results can be split by segment.
/// No policy, verdict or regret depends on it; claims about declared segments do.
///
/// Its name is a [label](label_fault) of 1 to [`MAX_SEGMENT_BYTES`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "ArrayString<MAX_SEGMENT_BYTES>")]
pub struct Segment(ArrayString<MAX_SEGMENT_BYTES>);

/// A text that is no segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSegment {
    /// It is empty or too long.
    #[error("a segment has 1 to {MAX_SEGMENT_BYTES} bytes; this one has {0}")]
    Length(usize),
    /// It has something that people cannot see, such as a line break.
    #[error("a segment is a label: {0}")]
    NoLabel(String),
}

impl Segment {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for Segment {
    type Error = NoSegment;

    fn try_from(text: &str) -> Result<Self, NoSegment> {
        if let Some(fault) = label_fault(text) {
            return Err(NoSegment::NoLabel(fault));
        }
        match ArrayString::from(text) {
            Ok(name) if !name.is_empty() => Ok(Self(name)),
            _ => Err(NoSegment::Length(text.len())),
        }
    }
}

impl TryFrom<String> for Segment {
    type Error = NoSegment;

    fn try_from(text: String) -> Result<Self, NoSegment> {
        text.as_str().try_into()
    }
}

impl From<Segment> for ArrayString<MAX_SEGMENT_BYTES> {
    fn from(Segment(name): Segment) -> Self {
        name
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
