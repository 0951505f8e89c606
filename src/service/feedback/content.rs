//! Feedback as callers give it, and its results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use rankduel_engine::clock::rfc3339;
use rankduel_engine::experiment_spec::FieldError;
use rankduel_engine::metrics::FeedbackStatus;
use rankduel_store::audience::Segment;

/// Places in the log for clicks on one page that do not settle its duel. Callers that send each
/// click by itself need one for each of the clicks that count.
pub(super) const CLICK_PLACES: u128 = 128;

/// The outcome of a duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Outcome)]
pub enum ShownOutcome {
    /// The left ranker won.
    Left,
    /// The right ranker won.
    Right,
    /// Both rankers earned the same credit, more than zero.
    Tie,
    /// No click: no signal, which is different from a tie.
    None,
}

/// The target of a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clicked {
    /// A position of the shown list, from 0.
    Position(u64),
    Document(String),
    Slot(String),
}

/// One event on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEvent {
    pub on: Clicked,
    /// Its kind. The experiment defines the weight of each kind.
    pub event: String,
}

/// The content of feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedbackContent {
    Outcome(ShownOutcome),
    /// Clicks on the page that the service interleaved.
    Clicks {
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
    /// `None` if there are only values of metrics.
    pub content: Option<FeedbackContent>,
    /// The user, session or device that answered, if `next-duel` did not name it.
    pub unit: Option<String>,
    /// The segment of the page, if `next-duel` did not name it.
    pub segment: Option<Segment>,
    /// Values of metrics, as they were sent: JSON.
    pub metrics: Option<Box<str>>,
}

impl Feedback {
    /// Approximate bytes to check. Units and values of metrics are short, and are not included.
    pub(super) fn bytes(&self) -> usize {
        let of_click = |click: &PageEvent| match &click.on {
            Clicked::Position(_) => 8,
            Clicked::Document(id) | Clicked::Slot(id) => 8 + id.len(),
        };
        let clicks = match &self.content {
            Some(FeedbackContent::Clicks { clicks, .. }) => clicks.iter().map(of_click).sum(),
            Some(FeedbackContent::Outcome(_)) | None => 0,
        };
        self.duel_id.len() + clicks
    }
}

/// A value of a metric that does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct IgnoredValue {
    /// Where it is in the item.
    #[schema(example = "/metrics/bm25/latency")]
    pub pointer: String,
    pub detail: String,
}

/// The result for one item of feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Receipt {
    pub status: FeedbackStatus,
    /// Log position of this feedback, or of the earlier feedback on the duel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub position: Option<u64>,
    /// The reason why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
    /// Values of metrics that were ignored, and why. Omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<IgnoredValue>,
    /// Where the item is wrong, if its duel is valid.
    #[serde(skip)]
    pub pointer: Option<String>,
}

impl Receipt {
    fn of(status: FeedbackStatus, position: Option<u64>, detail: Option<String>) -> Self {
        Self { status, position, detail, ignored: Vec::new(), pointer: None }
    }

    /// It counts, and is in the log at this position.
    pub(super) fn recorded(position: u64) -> Self {
        Self::of(FeedbackStatus::Recorded, Some(position), None)
    }

    /// Where orders decide, clicks that can link nothing: a client has done all that it can.
    pub(super) fn nothing() -> Self {
        Self::of(FeedbackStatus::Recorded, None, None)
    }

    /// The same answer was recorded before, at this position if that is known.
    pub(super) fn duplicate(position: impl Into<Option<u64>>) -> Self {
        Self::of(FeedbackStatus::Duplicate, position.into(), None)
    }

    /// A different answer of this duel was recorded before, at this position; that one stands.
    pub(super) fn conflict(position: u64) -> Self {
        let detail = format!(
            "another outcome of this duel was recorded before (log position {position}); that one \
             counts"
        );
        Self::of(FeedbackStatus::Conflict, Some(position), Some(detail))
    }

    /// The duel was settled before these clicks, at this position.
    pub(super) fn late(position: u64) -> Self {
        let detail = format!(
            "the duel was settled before these clicks (log position {position}); they change \
             nothing"
        );
        Self::of(FeedbackStatus::Late, Some(position), Some(detail))
    }

    /// Values of metrics alone, none of which counts; they change nothing.
    pub(super) fn ignored(ignored: Vec<IgnoredValue>, is_late: bool) -> Self {
        let status = if is_late { FeedbackStatus::Late } else { FeedbackStatus::Ignored };
        let detail = ignored.first().map(|first| first.detail.clone());
        Self { ignored, ..Self::of(status, None, detail) }
    }

    /// Its `duel_id` is the empty one of a page that takes no part.
    pub(super) fn outside() -> Self {
        let detail = "the page takes no part in the experiment: its `duel_id` is empty";
        Self::of(FeedbackStatus::Ignored, None, Some(detail.into()))
    }

    /// An event whose kind has no weight in the experiment.
    pub fn without_weight(detail: String) -> Self {
        Self::of(FeedbackStatus::Ignored, None, Some(detail))
    }

    /// Clicks that find no place in the log any more.
    pub(super) fn no_place(can_settle: bool) -> Self {
        let rest = if can_settle { ": send the rest with `\"final\": true`" } else { "" };
        let detail = format!(
            "clicks on this page have come in {CLICK_PLACES} different pieces, and the log keeps no \
             more{rest}"
        );
        Self::of(FeedbackStatus::Ignored, None, Some(detail))
    }

    /// The duel had expired at this time, in unix milliseconds.
    pub(super) fn expired(at: i64) -> Self {
        let detail = format!("the duel expired at {}", rfc3339(at));
        Self::of(FeedbackStatus::Expired, None, Some(detail))
    }

    /// It is malformed, or names no duel of this experiment.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::of(FeedbackStatus::Invalid, None, Some(detail.into()))
    }

    /// The duel is valid, but the clicks are not.
    pub(super) fn refused(FieldError { pointer, detail }: FieldError) -> Self {
        Self { pointer: Some(pointer), ..Self::invalid(detail) }
    }
}
