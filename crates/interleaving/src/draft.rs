//! The result of a method's draft: documents in the order shown, and the side each belongs to.

use serde::{Deserialize, Serialize};

use crate::lists::Lists;

/// The side that a slot belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Team {
    /// The left ranker.
    Left,
    /// The right ranker.
    Right,
    /// Neither side: both wanted the document, or both rank it the same.
    Both,
}

impl Team {
    /// The other side; `Both` stays `Both`.
    pub fn other(self) -> Self {
        match self {
            Team::Left => Team::Right,
            Team::Right => Team::Left,
            Team::Both => Team::Both,
        }
    }
}

/// One drafted document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Drafted {
    /// The document's number.
    pub document: u32,
    /// The side that the slot belongs to. Balanced and probabilistic interleaving give credit by
    /// rank instead; for them this is the side that the document was taken from.
    pub team: Team,
    /// Whether a click on the document can earn credit.
    pub competitive: bool,
}

/// A remark about a draft that a log should record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Note {
    /// Optimized interleaving: no distribution over the lists is unbiased, so the one with the
    /// smallest bias is used.
    Relaxed {
        /// The largest absolute mean credit of a position.
        bias: f64,
    },
    /// Optimized interleaving: team draft was used instead, because there were too many lists or
    /// the linear program had no solution.
    FellBack,
}

/// The first documents of a shown list.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The documents in the order shown.
    pub slots: Vec<Drafted>,
    /// A remark for the log.
    pub note: Option<Note>,
}

impl Draft {
    /// A draft of these slots, without a note.
    pub fn of(slots: Vec<Drafted>) -> Self {
        Self { slots, note: None }
    }

    /// Appends documents that earn no credit, up to `length` slots in total.
    pub(crate) fn append_tail(&mut self, lists: &Lists, length: usize) {
        let missing = length.saturating_sub(self.slots.len());
        self.slots.extend(lists.tail().iter().take(missing).map(|&document| {
            let team = if lists.ranks(document)[0] > 0 { Team::Left } else { Team::Right };
            Drafted { document, team, competitive: false }
        }));
    }
}
