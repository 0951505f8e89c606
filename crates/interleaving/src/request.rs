//! A request for one page, and its limits.

use std::collections::HashMap;

/// The largest number of documents in a ranking, including repeats.
pub const MAX_DOCUMENTS: usize = 10_000;
/// The number of positions that the pages of one list can cover.
pub const MAX_DEPTH: usize = 1_000;
/// The largest number of pinned documents.
pub const MAX_PINS: usize = 100;

/// A request for one page.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a, S> {
    /// The left ranking as opaque ids, best first. If an id occurs twice, the first occurrence
    /// counts.
    pub left: &'a [S],
    /// The right ranking.
    pub right: &'a [S],
    /// Number of slots of the shown list before this page.
    pub offset: usize,
    /// Number of slots of this page. The page is shorter where the list ends.
    pub length: usize,
    /// Documents at fixed positions.
    pub pinned: &'a [Pin<S>],
}

/// A document at a fixed position. It is removed from both rankings and earns no credit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin<S> {
    /// The document; it need not be in the rankings.
    pub document: S,
    /// Position in the shown list, from 0 on the first page. A document pinned beyond the end of
    /// the list comes last.
    pub position: usize,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// A ranking is too long.
    #[error("the {side} ranking has {documents} documents; the limit is {MAX_DOCUMENTS}")]
    TooManyDocuments {
        /// `left` or `right`.
        side: &'static str,
        /// Its number of documents.
        documents: usize,
    },
    /// The page has no slots.
    #[error("`length` is 0; a page has at least 1 result")]
    NoLength,
    /// The page is too far down.
    #[error("offset {offset} plus length {length} is more than {MAX_DEPTH}, the last position")]
    TooDeep {
        /// The requested offset.
        offset: usize,
        /// The requested length.
        length: usize,
    },
    /// There are too many pins.
    #[error("{pins} documents are pinned; the limit is {MAX_PINS}")]
    TooManyPins {
        /// Number of pins.
        pins: usize,
    },
    /// A pin is too far down.
    #[error("pin {index} is at position {position}; positions are 0 to {}", MAX_DEPTH - 1)]
    PinOutOfRange {
        /// Index of the pin, from 0.
        index: usize,
        /// Its position.
        position: usize,
    },
    /// Two pins have the same position.
    #[error("pins {first} and {second} are both at position {position}")]
    PinsCollide {
        /// Index of the first pin, from 0.
        first: usize,
        /// Index of the second pin.
        second: usize,
        /// Their position.
        position: usize,
    },
    /// One document is pinned twice.
    #[error("pins {first} and {second} are the same document")]
    PinnedTwice {
        /// Index of the first pin, from 0.
        first: usize,
        /// Index of the second pin.
        second: usize,
    },
}

impl<'a, S: AsRef<str>> Request<'a, S> {
    /// Checks all limits, and returns the pins in the order of their positions.
    pub(crate) fn check(&self) -> Result<Vec<(usize, &'a str)>, InvalidRequest> {
        for (side, list) in [("left", self.left), ("right", self.right)] {
            if list.len() > MAX_DOCUMENTS {
                return Err(InvalidRequest::TooManyDocuments { side, documents: list.len() });
            }
        }
        let (offset, length) = (self.offset, self.length);
        if length == 0 {
            return Err(InvalidRequest::NoLength);
        }
        if offset.saturating_add(length) > MAX_DEPTH {
            return Err(InvalidRequest::TooDeep { offset, length });
        }
        if self.pinned.len() > MAX_PINS {
            return Err(InvalidRequest::TooManyPins { pins: self.pinned.len() });
        }
        sorted_pins(self.pinned)
    }
}

fn sorted_pins<S: AsRef<str>>(pinned: &[Pin<S>]) -> Result<Vec<(usize, &str)>, InvalidRequest> {
    let (mut positions, mut documents) = (HashMap::new(), HashMap::new());
    for (index, pin) in pinned.iter().enumerate() {
        let position = pin.position;
        if position >= MAX_DEPTH {
            return Err(InvalidRequest::PinOutOfRange { index, position });
        }
        if let Some(first) = positions.insert(position, index) {
            return Err(InvalidRequest::PinsCollide { first, second: index, position });
        }
        if let Some(first) = documents.insert(pin.document.as_ref(), index) {
            return Err(InvalidRequest::PinnedTwice { first, second: index });
        }
    }
    let mut pins: Vec<(usize, &str)> =
        pinned.iter().map(|pin| (pin.position, pin.document.as_ref())).collect();
    pins.sort_unstable_by_key(|&(position, _)| position);
    Ok(pins)
}
