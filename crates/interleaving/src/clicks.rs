//! Clicks on a shown list.

/// The largest weight of a click.
pub const MAX_WEIGHT: u32 = 100;

/// A click, or another event with the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Click {
    /// Position in the shown list, from 0. Later pages continue the count of earlier ones.
    pub position: usize,
    /// The weight, from 1 to [`MAX_WEIGHT`]. A document counts once, with the largest weight of its
    /// events, so that one duel is one outcome however many events it has.
    pub weight: u32,
}

impl Click {
    /// A click with weight 1.
    pub fn at(position: usize) -> Self {
        Self { position, weight: 1 }
    }
}

/// Why a click was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClick {
    /// The position was not shown.
    #[error("position {position} was not shown: the list has {shown} results, counted from 0")]
    Outside {
        /// The position.
        position: usize,
        /// Length of the shown list.
        shown: usize,
    },
    /// The weight is out of range.
    #[error(
        "the click at position {position} has weight {weight}; weights are from 1 to {MAX_WEIGHT}"
    )]
    Weight {
        /// The position.
        position: usize,
        /// The weight.
        weight: u32,
    },
    /// The document was not shown.
    #[error("document `{0}` was not shown")]
    Document(String),
}
