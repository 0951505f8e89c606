//! The facts that baskets are made of.

use serde::{Deserialize, Serialize};

use crate::Duel;
use crate::claims::alone::Arm;

/// Tolerance between the clock of pages and the clock of orders, in milliseconds.
pub const CLOCK_MS: i64 = 5_000;
/// Most pieces of one line that count for a score by orders.
pub const MOST_PIECES: u16 = 10;

/// The name of a document in one experiment: a keyed hash.
pub type Document = [u8; 5];

/// The measure by which a basket counts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub enum By {
    /// The ordered pieces.
    #[default]
    Orders,
    /// Their value, at most `cap` for either side of one basket.
    Money {
        /// In the currency of the values; above 0.
        cap: f64,
    },
}

/// The rules of an experiment that orders decide. Fixed when it is created.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rules {
    /// An order counts within this time after the unit's first linked page; in milliseconds.
    pub window_ms: i64,
    /// How long after its time an order may arrive; in milliseconds.
    pub arrival_ms: i64,
    /// The measure: orders or money.
    pub by: By,
}

impl Rules {
    /// The window of the [cohorts](crate::evidence::Cohorts): when a basket that opened at a time
    /// can be closed, in milliseconds after it.
    pub fn cohort_window_ms(&self) -> i64 {
        self.window_ms + self.arrival_ms + CLOCK_MS
    }
}

/// A page with clicked documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The pair. A positive credit is its first ranker's.
    pub duel: Duel,
    /// Unix milliseconds.
    pub issued_at: i64,
    /// Number of the declared segment, from 1; 0 for any other page.
    pub segment: u8,
}

/// The pair of a unit, or its one ranker, fixed before anything of the unit is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The lower ranker and the higher one; the same one twice if the unit sees it alone.
    pub pair: (u16, u16),
    /// Unix milliseconds at which the first page was issued.
    pub at: i64,
    /// The ticket of the selection.
    pub ticket: u64,
    /// The position of the log at which it was selected.
    pub chosen_at: u64,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The ordered document.
    pub document: Document,
    /// Of one piece; finite, 0 or more. 0 if the caller sent none.
    pub value: f64,
    /// Number of pieces, from 1.
    pub quantity: u16,
}

/// An order of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Hash of its id.
    pub order: u64,
    /// Unix milliseconds at which it was placed.
    pub at: i64,
    /// At least one.
    pub lines: Vec<Line>,
}

/// The first page of a unit that sees one ranker alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// Unix milliseconds.
    pub issued_at: i64,
    /// The ranker that led then, and the control. If they are the same one, the unit is not of the
    /// lift.
    pub leader: u16,
    /// See `leader`.
    pub control: u16,
    /// Whether the unit sees the leader.
    pub sees_leader: bool,
}

impl Alone {
    /// A page of this arm, issued at this time, when `leader` led against `control`.
    pub fn of(arm: Arm, leader: usize, control: usize, issued_at: i64) -> Self {
        let sees_leader = arm == Arm::Leader;
        Self { issued_at, leader: leader as u16, control: control as u16, sees_leader }
    }
}
