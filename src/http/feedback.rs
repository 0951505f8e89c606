//! `/v1/experiments/{name}/feedback`: outcomes and clicks.

use std::cmp::Ordering;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::click::{ClickList, ClickShape};
use super::extract::{self, JsonText, Object, PathName, with_integers, without_place};
use super::json_response::json_response;
use super::operations::Routes;
use super::problem::ProblemKind::{DuelExpired, ExperimentArchived, FeedbackConflict, InvalidDuel};
use super::problem::{ApiResult, Problem, ProblemKind, sentence};
use super::state::AppState;
use crate::service::feedback::{Feedback, FeedbackContent, Receipt, ShownOutcome, receive};
use crate::service::units::unit_error;
use rankduel_engine::access::Scope;
use rankduel_engine::metrics::FeedbackStatus;
use rankduel_store::audience::Segment;

/// The path of [`feedback`].
pub(super) const FEEDBACK: &str = "/v1/experiments/{name}/feedback";

/// Approximate bytes of a receipt as JSON.
const RECEIPT_BYTES: usize = 64;

/// Maximum number of items in one request.
const MANY_MAX: usize = 1000;

pub(crate) fn routes() -> Routes {
    Routes::new().operation(
        routes!(feedback),
        Some(Scope::Feedback),
        &[ExperimentArchived, FeedbackConflict, DuelExpired, InvalidDuel],
    )
}

/// Feedback on one duel: its outcome, the number of clicks credited to each side, or the clicks on
/// its interleaved page.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// From `next-duel` or `interleave`. Feedback with the empty one of a page that takes no part in
    /// the experiment is `ignored`.
    duel_id: String,
    #[schema(nullable = false)]
    outcome: Option<ShownOutcome>,
    /// Instead of `outcome`, with `right_clicks`: number of clicks credited to the left ranker. The
    /// ranker with more clicks wins. Equal numbers are a tie, and zero for both is no signal.
    #[schema(nullable = false)]
    left_clicks: Option<u32>,
    #[schema(nullable = false)]
    right_clicks: Option<u32>,
    /// Instead of `outcome`, with the `duel_id` of an interleaved page. Order and repeats do not
    /// matter.
    #[schema(value_type = Option<Vec<ClickShape>>, max_items = 100, nullable = false)]
    clicks: Option<ClickList>,
    /// With `clicks`: whether these are the last clicks of the duel; `true` by default, which
    /// settles it. After `false` the duel stays open until clicks with `true` arrive, or until the
    /// experiment's `settle_after_seconds` have passed.
    #[serde(rename = "final")]
    #[schema(nullable = false)]
    last: Option<bool>,
    /// The unit that sees the page, if `next-duel` was not told.
    #[schema(max_length = 256, nullable = false)]
    unit: Option<String>,
    /// The segment of the page, if `next-duel` was not told.
    #[schema(value_type = Option<String>, max_length = 32, example = "mobile", nullable = false)]
    segment: Option<Segment>,
    /// Values of the experiment's metrics, by ranker and metric, with an outcome, with clicks, or
    /// alone. They count within the experiment's `value_window_seconds`. A value that cannot be
    /// read is `ignored`, and the rest counts.
    #[schema(value_type = Option<HashMap<String, HashMap<String, f64>>>, nullable = false, example = json!({"bm25": {"latency_ms": 12}, "neural": {"latency_ms": 41}}))]
    metrics: Option<Box<RawValue>>,
}

impl One {
    /// The error is a JSON pointer and a clause.
    fn read(mut self) -> Result<Feedback, (&'static str, &'static str)> {
        if self.unit.as_deref().is_some_and(|unit| unit_error(unit).is_some()) {
            return Err(("/unit", "a unit has at most 256 bytes"));
        }
        let content = self.content()?;
        let Self { duel_id, unit, segment, metrics, .. } = self;
        let metrics = metrics.map(Box::from);
        Ok(Feedback { duel_id: duel_id.into(), content, unit, segment, metrics })
    }

    fn content(&mut self) -> Result<Option<FeedbackContent>, (&'static str, &'static str)> {
        let clicks = self.clicks.take();
        if clicks.is_none() && self.last.is_some() {
            return Err(("/final", "`final` goes with `clicks` only"));
        }
        let outcome = match (clicks, self.outcome, self.left_clicks, self.right_clicks) {
            (Some(ClickList(clicks)), None, None, None) => {
                let last = self.last.unwrap_or(true);
                return Ok(Some(FeedbackContent::Clicks { clicks, last }));
            }
            (Some(_), ..) => return Err(("/clicks", "send `clicks` or an outcome, not both")),
            (None, Some(outcome), None, None) => outcome,
            (None, Some(_), ..) => return Err(("/outcome", "send `outcome` or clicks, not both")),
            (None, None, Some(0), Some(0)) => ShownOutcome::None,
            (None, None, Some(left), Some(right)) => match left.cmp(&right) {
                Ordering::Greater => ShownOutcome::Left,
                Ordering::Less => ShownOutcome::Right,
                Ordering::Equal => ShownOutcome::Tie,
            },
            (None, None, Some(_), None) => {
                return Err(("/right_clicks", "`left_clicks` needs `right_clicks` beside it"));
            }
            (None, None, None, Some(_)) => {
                return Err(("/left_clicks", "`right_clicks` needs `left_clicks` beside it"));
            }
            (None, None, None, None) if self.metrics.is_some() => return Ok(None),
            (None, None, None, None) => {
                let detail = "send `outcome`, or `left_clicks` and `right_clicks`, or `clicks`";
                return Err(("/outcome", detail));
            }
        };
        Ok(Some(FeedbackContent::Outcome(outcome)))
    }
}

/// Feedback on several duels. Each item has the form of a single one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Many {
    // Their text: a parsed item no longer shows that a field was repeated.
    #[schema(value_type = Vec<One>, min_items = 1, max_items = 1000)]
    feedback: Vec<Box<RawValue>>,
}

/// [`Many`], if each item is valid.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Valid {
    feedback: Vec<Object<One>>,
}

/// Feedback on one duel, or on several.
#[derive(Debug, ToSchema)]
#[schema(as = FeedbackBody)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what `Posted` reads")]
enum Body {
    /// Several duels.
    Many(Many),
    /// One duel.
    One(One),
}

/// The feedback of a body.
enum Posted {
    One(Feedback),
    /// Each item, or its error.
    Many(Vec<Result<Feedback, String>>),
}

impl Posted {
    fn read(text: &[u8]) -> ApiResult<Self> {
        // Nearly every body is valid. Any other is parsed again, to describe its errors.
        if let Ok(Object(one)) = serde_json::from_slice(text) {
            return one_feedback(one);
        }
        if let Ok(Object(Valid { feedback })) = serde_json::from_slice(text) {
            check_count(feedback.len())?;
            return Ok(Self::Many(feedback.into_iter().map(|Object(one)| read_one(one)).collect()));
        }
        let Object(Many { feedback }) = match serde_json::from_slice(text) {
            Ok(many) => many,
            // The members decide which form the caller meant, so that the error is about that form.
            Err(_) => {
                let object: Map<String, Value> = extract::json(text)?;
                if object.contains_key("feedback") {
                    Object(extract::json(text)?)
                } else {
                    // A parsed object describes most errors better; a repeated field is in the
                    // text alone.
                    return extract::object::<One>(object)
                        .and_then(|_| extract::json(text))
                        .and_then(one_feedback);
                }
            }
        };
        check_count(feedback.len())?;
        Ok(Self::Many(feedback.iter().map(|item| read_item(item.get())).collect()))
    }
}

fn one_feedback(one: One) -> ApiResult<Posted> {
    one.read()
        .map(Posted::One)
        .map_err(|(pointer, detail)| Problem::invalid_at("feedback", pointer, detail))
}

fn read_one(one: One) -> Result<Feedback, String> {
    one.read().map_err(|(_, detail)| detail.to_owned())
}

fn read_item(text: &str) -> Result<Feedback, String> {
    let parsed = serde_json::from_str(text).or_else(|error| {
        let integers = with_integers(text.as_bytes());
        integers.map_or(Err(error), |integers| serde_json::from_slice(&integers))
    });
    match parsed {
        Ok(Object(one)) => read_one(one),
        Err(error) => {
            let of_value =
                serde_json::from_str::<Value>(text).and_then(serde_json::from_value::<Object<One>>);
            Err(without_place(&of_value.err().unwrap_or(error)))
        }
    }
}

/// Check the number of items.
fn check_count(count: usize) -> ApiResult<()> {
    if (1..=MANY_MAX).contains(&count) {
        return Ok(());
    }
    let detail = format!("`feedback` has {count} items; it must have 1 to {MANY_MAX}");
    Err(Problem::invalid(&detail).field("/feedback", detail))
}

/// The results for several items of feedback.
#[derive(Debug, Serialize, ToSchema)]
struct Receipts {
    /// In the order of the items.
    results: Vec<Receipt>,
}

/// The result for one item of feedback, or for several.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what `feedback` returns")]
enum FeedbackAnswer {
    /// For one item.
    One(Receipt),
    /// For several items.
    Many(Receipts),
}

/// The receipt of feedback on one duel, or the problem if it does not count and was not late.
fn receipt_or_problem(receipt: Receipt) -> ApiResult<Receipt> {
    let detail = receipt.detail.clone().unwrap_or_default();
    Err(match (receipt.status, receipt.pointer) {
        (FeedbackStatus::Conflict, _) => {
            Problem::new(ProblemKind::FeedbackConflict, sentence(&detail))
        }
        (FeedbackStatus::Expired, _) => Problem::new(ProblemKind::DuelExpired, sentence(&detail)),
        (FeedbackStatus::Invalid, None) => Problem::new(
            ProblemKind::InvalidDuel,
            format!("The duel is not one of this experiment: {detail}."),
        )
        .field("/duel_id", detail),
        (FeedbackStatus::Invalid, Some(pointer)) => {
            Problem::invalid_at("feedback", pointer, detail)
        }
        (
            FeedbackStatus::Recorded
            | FeedbackStatus::Duplicate
            | FeedbackStatus::Late
            | FeedbackStatus::Ignored,
            pointer,
        ) => return Ok(Receipt { pointer, ..receipt }),
    })
}

/// Receive the good items of a request. Returns the result of each item, in order.
pub(super) async fn receive_all(
    state: &AppState,
    name: &str,
    items: Vec<Result<Feedback, Receipt>>,
) -> ApiResult<Vec<Receipt>> {
    let mut good = Vec::with_capacity(items.len());
    let kept: Vec<Result<(), Receipt>> =
        items.into_iter().map(|item| item.map(|feedback| good.push(feedback))).collect();
    let mut received = receive(&state.service, name, good).await?.into_iter();
    kept.into_iter()
        .map(|item| match item {
            Err(result) => Ok(result),
            Ok(()) => match received.next() {
                Some(Receipt { pointer: Some(pointer), detail: Some(detail), .. }) => {
                    Ok(Receipt::invalid(format!("{pointer}: {detail}")))
                }
                Some(receipt) => Ok(receipt),
                None => Err(Problem::internal("an item of feedback has no result")),
            },
        })
        .collect()
}

/// Report outcomes or clicks
///
/// The response is sent only after the feedback is durable. Sending the same feedback again is
/// safe: it counts once. Feedback on one duel that cannot be counted gets an error response.
/// Feedback on several duels gets 200 with a result for each item; valid items count even if others
/// do not.
///
/// The `clicks` on an interleaved page may be sent in parts (`"final": false`), in any order, more
/// than once and to any server; together they give one outcome. Clicks that arrive after the duel
/// was settled get the status `late`.
#[utoipa::path(post, path = FEEDBACK, tag = "duels",
    request_body(content = Body, examples(
        ("outcome" = (value = json!({"duel_id": "AQAAAAEqAwEBAAD_rQM...", "outcome": "left"}))),
        ("clicks" = (value = json!({"duel_id": "AQAAAAEqAwEBAAD_rQM...", "left_clicks": 3, "right_clicks": 1}))),
        ("events" = (value = json!({"duel_id": "AgAAAAEqAwEBAAD_rQM...", "clicks": [0, {"document": "doc-7", "event": "click"}], "final": true}))),
        ("many" = (value = json!({"feedback": [{"duel_id": "AQAAAAEqAwEBAAD_rQM...", "outcome": "none"}]}))),
    )),
    responses(
        (status = 200, body = FeedbackAnswer, description = "For one duel: recorded, a duplicate, or late clicks. For several: the result for each."),
    ))]
async fn feedback(
    State(state): State<AppState>,
    PathName(name): PathName,
    text: JsonText,
) -> ApiResult<Response> {
    take(&state, &name, text).await
}

/// [`feedback`] on duels of the experiment with this name.
pub(super) async fn take(state: &AppState, name: &str, text: JsonText) -> ApiResult<Response> {
    match text.read(Posted::read).await? {
        Posted::One(feedback) => {
            match receive(&state.service, name, vec![feedback]).await?.into_iter().next() {
                Some(receipt) => Ok(json_response(&receipt_or_problem(receipt)?, RECEIPT_BYTES)),
                None => Err(Problem::internal("the feedback has no result")),
            }
        }
        Posted::Many(items) => {
            let items = items.into_iter().map(|item| item.map_err(Receipt::invalid)).collect();
            let results = receive_all(state, name, items).await?;
            let bytes = results.len() * RECEIPT_BYTES;
            Ok(json_response(&Receipts { results }, bytes))
        }
    }
}
