//! `/v1/experiments/{name}/feedback`: what was clicked.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::click::{ClickBody, ClickShape};
use super::extract::{self, JsonText, Object};
use super::problem::ProblemDocument;
use super::{ApiResult, AppState, PathOf, Problem, ProblemKind};
use crate::clock::rfc3339;
use crate::service::feedback::Feedback;
use crate::service::feedback::FeedbackContent;
use crate::service::feedback::Received;
use crate::service::feedback::ShownOutcome;

/// Most pieces of feedback in one request.
const MANY_MAX: usize = 1000;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(feedback))
}

/// What the searcher said about what was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The left ranker won.
    Left,
    /// The right ranker won.
    Right,
    /// Equal credit, and not none.
    Tie,
    /// No click: says nothing, and is not a tie.
    None,
}

/// The answer to one duel: its outcome, clicks that were credited to either side already, or what
/// was clicked on the page that `interleave` made of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// As `next-duel` gave it.
    duel_id: String,
    /// The outcome.
    #[schema(nullable = false)]
    outcome: Option<Outcome>,
    /// Instead of `outcome`, with `right_clicks`: more clicks win; equal and not zero is a tie;
    /// none at all is no signal.
    #[schema(nullable = false)]
    left_clicks: Option<u32>,
    /// Clicks that are credited to the right ranker.
    #[schema(nullable = false)]
    right_clicks: Option<u32>,
    /// Instead of `outcome`, with the `duel_id` of an interleaved page: what was clicked on it, at
    /// most 100. Order and repeats do not matter.
    #[schema(value_type = Option<Vec<ClickShape>>, max_items = 100, nullable = false)]
    clicks: Option<Vec<ClickBody>>,
    /// With `clicks`: whether that is all, which it is unless said otherwise. Then the duel is
    /// settled, on these clicks and on those that were sent for it before. With `false` more may
    /// come: the duel is settled by what says `true`, or after the experiment's
    /// `settle_after_seconds`.
    #[serde(rename = "final")]
    #[schema(nullable = false)]
    last: Option<bool>,
}

impl One {
    fn read(self) -> Result<Feedback, (&'static str, &'static str)> {
        if let Some(clicks) = self.clicks {
            if self.outcome.is_some() || self.left_clicks.is_some() || self.right_clicks.is_some() {
                return Err(("/clicks", "send `clicks` or an outcome, not both"));
            }
            let clicks = clicks.into_iter().map(|click| click.0).collect();
            let said = FeedbackContent::Clicks { clicks, last: self.last.unwrap_or(true) };
            return Ok(Feedback { duel_id: self.duel_id, content: said });
        }
        if self.last.is_some() {
            return Err(("/final", "`final` goes with `clicks` only"));
        }
        let outcome = match (self.outcome, self.left_clicks, self.right_clicks) {
            (Some(Outcome::Left), None, None) => ShownOutcome::Left,
            (Some(Outcome::Right), None, None) => ShownOutcome::Right,
            (Some(Outcome::Tie), None, None) => ShownOutcome::Tie,
            (Some(Outcome::None), None, None) => ShownOutcome::None,
            (None, Some(0), Some(0)) => ShownOutcome::None,
            (None, Some(left), Some(right)) => match left.cmp(&right) {
                std::cmp::Ordering::Greater => ShownOutcome::Left,
                std::cmp::Ordering::Less => ShownOutcome::Right,
                std::cmp::Ordering::Equal => ShownOutcome::Tie,
            },
            (Some(_), _, _) => return Err(("/outcome", "send `outcome` or clicks, not both")),
            (None, Some(_), None) => {
                return Err(("/right_clicks", "`left_clicks` needs `right_clicks` beside it"));
            }
            (None, None, Some(_)) => {
                return Err(("/left_clicks", "`right_clicks` needs `left_clicks` beside it"));
            }
            (None, None, None) => {
                return Err((
                    "/outcome",
                    "send `outcome`, or `left_clicks` and `right_clicks`, or `clicks`",
                ));
            }
        };
        Ok(Feedback { duel_id: self.duel_id, content: FeedbackContent::Outcome(outcome) })
    }
}

/// Many answers; each item is as a single one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Many {
    /// 1 to 1000 of them.
    #[schema(value_type = Vec<One>, min_items = 1, max_items = 1000)]
    feedback: Vec<Value>,
}

/// One answer, or many.
#[derive(Debug, ToSchema)]
#[schema(as = FeedbackBody)]
#[serde(untagged)]
#[expect(dead_code, reason = "says in the description of the API what is sent")]
enum Body {
    /// Many.
    Many(Many),
    /// One.
    One(One),
}

/// A [`Body`] that was read.
enum Answers {
    /// Many; of those that are none, why.
    Many(Vec<Result<One, String>>),
    One(One),
}

/// Many, each of them well-formed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WellFormed {
    feedback: Vec<Object<One>>,
}

impl Answers {
    fn read(text: &[u8]) -> ApiResult<Self> {
        // nearly every body is as it should be; any other is read once more, for what to say of it
        if let Ok(Object(one)) = serde_json::from_slice(text) {
            return Ok(Self::One(one));
        }
        if let Ok(Object(WellFormed { feedback })) = serde_json::from_slice(text) {
            return Ok(Self::Many(feedback.into_iter().map(|Object(one)| Ok(one)).collect()));
        }
        // by what it has, so that what is wrong with it is said about the form that was meant
        let object: Map<String, Value> = extract::json(text)?;
        if !object.contains_key("feedback") {
            return extract::object(object).map(Self::One);
        }
        let Many { feedback } = extract::object(object)?;
        let one = |item| {
            serde_json::from_value(item).map(|Object(one)| one).map_err(|error| error.to_string())
        };
        Ok(Self::Many(feedback.into_iter().map(one).collect()))
    }
}

/// What became of one answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Receipt {
    /// What became of it.
    pub status: ReceiptStatus,
    /// Where it stands in the log: it, or what was sent for the duel before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub position: Option<u64>,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReceiptStatus {
    /// It counts, and is durable.
    Recorded,
    /// The same was sent before; it counts once.
    Duplicate,
    /// Something else was sent before; that counts.
    Conflict,
    /// It came after the duel's time.
    Expired,
    /// Clicks, and the duel was settled before: they change nothing, and sending them again does
    /// not either.
    Late,
    /// It names no duel of this experiment, or is malformed.
    Invalid,
}

/// What became of many answers, in the order they were sent.
#[derive(Debug, Serialize, ToSchema)]
struct Receipts {
    /// One for each.
    results: Vec<Receipt>,
}

/// What became of one answer, or of many.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "says in the description of the API what comes back")]
enum FeedbackAnswer {
    /// Of one.
    One(Receipt),
    /// Of many.
    Many(Receipts),
}

impl From<Received> for Receipt {
    fn from(received: Received) -> Self {
        let receipt = |status, position, detail| Self { status, position, detail };
        match received {
            Received::Recorded(position) => receipt(ReceiptStatus::Recorded, Some(position), None),
            Received::Duplicate(position) => {
                receipt(ReceiptStatus::Duplicate, Some(position), None)
            }
            Received::Conflict(position) => {
                receipt(ReceiptStatus::Conflict, Some(position), Some(conflict_detail(position)))
            }
            Received::Expired { expired_at } => {
                receipt(ReceiptStatus::Expired, None, Some(expired_detail(expired_at)))
            }
            Received::Late(position) => {
                receipt(ReceiptStatus::Late, Some(position), Some(late_detail(position)))
            }
            Received::Invalid(detail) => receipt(ReceiptStatus::Invalid, None, Some(detail)),
            Received::Refused(error) => receipt(
                ReceiptStatus::Invalid,
                None,
                Some(format!("{}: {}", error.pointer, error.detail)),
            ),
        }
    }
}

fn conflict_detail(position: u64) -> String {
    format!(
        "another outcome of this duel was recorded before (log position {position}); that one counts"
    )
}

fn late_detail(position: u64) -> String {
    format!(
        "the duel was settled before these clicks (log position {position}); they change nothing"
    )
}

fn expired_detail(expired_at: i64) -> String {
    format!("the duel expired at {}", rfc3339(expired_at))
}

/// Report what was clicked
///
/// Answered only when what counts is durable. Sending the same again is safe: it counts once. One
/// answer: its problems are the response's. Many: 200 with what became of each, in order; good
/// items count whatever the others are.
///
/// `clicks` of a page that `interleave` made may come in pieces (`"final": false`), in any order,
/// more than once, at any server; together they are one outcome. What comes after the duel was
/// settled is answered with the status `late`.
#[utoipa::path(post, path = "/experiments/{name}/feedback", tag = "duels", security(("key" = ["feedback"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    request_body(content = Body, examples(
        ("outcome" = (value = json!({"duel_id": "AQAAAAEqAwEBAAD_rQM...", "outcome": "left"}))),
        ("clicks" = (value = json!({"duel_id": "AQAAAAEqAwEBAAD_rQM...", "left_clicks": 3, "right_clicks": 1}))),
        ("events" = (value = json!({"duel_id": "AgAAAAEqAwEBAAD_rQM...", "clicks": [0, {"document": "doc-7", "event": "click"}], "final": true}))),
        ("many" = (value = json!({"feedback": [{"duel_id": "AQAAAAEqAwEBAAD_rQM...", "outcome": "none"}]}))),
    )),
    responses(
        (status = 200, body = FeedbackAnswer, description = "One: recorded, a repeat of what was recorded, or clicks that came late. Many: what became of each."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "One: `feedback-conflict`: another outcome was recorded before, and that one counts. `experiment-archived`."),
        (status = 410, body = ProblemDocument, content_type = "application/problem+json", description = "One: `duel-expired`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-duel`: forged, changed, or of another experiment. `invalid-request`: malformed."),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json", description = "`unavailable` or `overloaded`: not durable; send the same again after `Retry-After` seconds.", headers(("retry-after" = u32))),
    ))]
async fn feedback(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonText(text): JsonText,
) -> ApiResult<Response> {
    match Answers::read(&text)? {
        Answers::One(one) => {
            let feedback = one.read().map_err(|(pointer, detail)| {
                Problem::new(
                    ProblemKind::InvalidRequest,
                    format!("The feedback is not as it should be: {detail}."),
                )
                .field(pointer, detail)
            })?;
            let received = state.service.receive(&name, &[feedback]).await?;
            match received.into_iter().next() {
                Some(Received::Conflict(position)) => Err(Problem::new(
                    ProblemKind::FeedbackConflict,
                    sentence(&conflict_detail(position)),
                )),
                Some(Received::Expired { expired_at }) => Err(Problem::new(
                    ProblemKind::DuelExpired,
                    sentence(&expired_detail(expired_at)),
                )),
                Some(Received::Invalid(detail)) => Err(Problem::new(
                    ProblemKind::InvalidDuel,
                    format!("The duel is not one of this experiment: {detail}."),
                )
                .field("/duel_id", detail)),
                Some(Received::Refused(error)) => Err(Problem::new(
                    ProblemKind::InvalidRequest,
                    format!("The feedback is not as it should be: {}.", error.detail),
                )
                .field(error.pointer, error.detail)),
                Some(counted) => Ok(Json(Receipt::from(counted)).into_response()),
                None => Err(Problem::internal("one piece of feedback got no answer")),
            }
        }
        Answers::Many(items) => {
            receive_many(&state, &name, items).await.map(IntoResponse::into_response)
        }
    }
}

async fn receive_many(
    state: &AppState,
    name: &str,
    items: Vec<Result<One, String>>,
) -> ApiResult<Json<Receipts>> {
    if items.is_empty() || items.len() > MANY_MAX {
        let detail = format!("`feedback` has {} items; it must have 1 to {MANY_MAX}", items.len());
        return Err(
            Problem::new(ProblemKind::InvalidRequest, sentence(&detail)).field("/feedback", detail)
        );
    }
    let mut good = Vec::with_capacity(items.len());
    let mut keep = |item: Result<One, String>| {
        good.push(item?.read().map_err(|(_, detail)| detail.to_string())?);
        Ok(())
    };
    let kept: Vec<Result<(), String>> = items.into_iter().map(&mut keep).collect();
    let mut received = state.service.receive(name, &good).await?.into_iter();
    let results = kept
        .into_iter()
        .map(|item| match item {
            Ok(()) => received
                .next()
                .map(Receipt::from)
                .ok_or_else(|| Problem::internal("a piece of feedback got no answer")),
            Err(detail) => Ok(Received::Invalid(detail).into()),
        })
        .collect::<ApiResult<_>>()?;
    Ok(Json(Receipts { results }))
}

fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
