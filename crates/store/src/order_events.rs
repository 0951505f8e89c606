//! Events of experiments that orders decide, as plain data.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::audience::Segment;
use crate::hashes::{DocumentHash, UnitHash};

/// Clicked documents of the page of a duel. Every field but the links comes from the duel's token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinksEvent {
    /// The duel's nonce.
    pub duel: Uuid,
    /// First ranker of the ordered pair that the policy chose.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// The policy's note on its selection.
    pub ticket: u64,
    /// Log position at which it was selected.
    pub chosen_at: u64,
    /// Unix milliseconds at which it was issued.
    pub issued_at: i64,
    /// Version of the method that interleaved the page.
    pub method: u32,
    /// The unit that clicked.
    pub unit: UnitHash,
    /// The segment of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    /// Documents, each once and in the order of their hashes, with the credit of a click on each:
    /// -127 to 127, positive for the first ranker.
    pub links: Vec<(DocumentHash, i8)>,
}

impl LinksEvent {
    /// Whether this is a repeat of `logged`. The segment is no part of it.
    pub(crate) fn repeats(&self, logged: &Self) -> bool {
        Self { segment: logged.segment, ..self.clone() } == *logged
    }
}

/// An order of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderEvent {
    /// The order.
    pub order: OrderHash,
    /// The unit that ordered.
    pub unit: UnitHash,
    /// Unix milliseconds at which it ordered.
    pub at: i64,
    /// Documents, with the value of a piece and the number of pieces. A value that the caller left
    /// out is 0.
    pub lines: Vec<(DocumentHash, f64, u32)>,
}

/// The pair that a unit sees, or its one ranker twice: with the ticket of the selection, the log
/// position at which it was selected, and the Unix milliseconds of the first page.
pub type HomeRow = (UnitHash, u16, u16, u64, u64, i64);

/// Hash of the id of an order: 16 hexadecimal digits in JSON.
pub type OrderHash = UnitHash;
