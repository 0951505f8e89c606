//! Feedback as callers give it, and its results.

use std::sync::Arc;

use crate::audience::Segment;
use crate::engine::experiment_spec::FieldError;
use crate::telemetry::metrics::FeedbackStatus;

/// The outcome of a duel by side of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownOutcome {
    /// The left ranker won.
    Left,
    /// The right ranker won.
    Right,
    /// Both sides have equal credit, and not none.
    Tie,
    /// No click.
    None,
}

/// The target of a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clicked {
    /// A position of the shown list, from 0.
    Position(u64),
    /// A document, by its id.
    Document(String),
    /// A slot, by its token.
    Slot(String),
}

/// One event on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEvent {
    /// Its target.
    pub on: Clicked,
    /// Its kind. The experiment defines the weight of each kind.
    pub event: String,
}

/// The content of feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedbackContent {
    /// The outcome of the duel.
    Outcome(ShownOutcome),
    /// Clicks on the page that the service interleaved.
    Clicks {
        /// In any order.
        clicks: Vec<PageEvent>,
        /// Whether these are the last clicks: they settle the duel, together with earlier ones.
        last: bool,
    },
}

/// Feedback on one duel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// The `duel_id` as it was issued. Items of one request may share the text.
    pub duel_id: Arc<str>,
    /// The outcome or the clicks.
    pub content: FeedbackContent,
    /// The user, session or device that answered, if `next-duel` did not name it.
    pub unit: Option<String>,
    /// The segment of the page, if `next-duel` did not name it.
    pub segment: Option<Segment>,
}

impl Feedback {
    /// About how many bytes it takes to check.
    pub(super) fn bytes(&self) -> usize {
        let of_click = |click: &PageEvent| match &click.on {
            Clicked::Position(_) => 8,
            Clicked::Document(id) | Clicked::Slot(id) => 8 + id.len(),
        };
        let clicks = match &self.content {
            FeedbackContent::Outcome(_) => 0,
            FeedbackContent::Clicks { clicks, .. } => clicks.iter().map(of_click).sum(),
        };
        self.duel_id.len() + clicks
    }
}

/// The result of one piece of feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It counts, and is in the log at this position.
    Recorded(u64),
    /// The same answer was recorded before, at this position.
    Duplicate(u64),
    /// A different answer of this duel was recorded before, at this position; that one stands.
    Conflict(u64),
    /// The duel had expired.
    Expired {
        /// Unix milliseconds at which the duel expired.
        expired_at: i64,
    },
    /// The duel was settled before these clicks, at this position; they change nothing.
    Late(u64),
    /// It names no duel of this experiment.
    Invalid(String),
    /// The duel is valid, but the clicks are not.
    Refused(FieldError),
}

impl Received {
    /// The status that it is counted under.
    pub fn status(&self) -> FeedbackStatus {
        match self {
            Self::Recorded(_) => FeedbackStatus::Recorded,
            Self::Duplicate(_) => FeedbackStatus::Duplicate,
            Self::Conflict(_) => FeedbackStatus::Conflict,
            Self::Expired { .. } => FeedbackStatus::Expired,
            Self::Late(_) => FeedbackStatus::Late,
            Self::Invalid(_) | Self::Refused(_) => FeedbackStatus::Invalid,
        }
    }
}
