//! `/v1/experiments/{name}/feedback/ubi`: what was clicked, as User Behavior Insights events.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::feedback::{Receipt, ReceiptStatus};
use super::problem::ProblemDocument;
use super::{ApiResult, AppState, JsonBody, PathOf, Problem, ProblemKind};
use crate::service::feedback::Clicked;
use crate::service::feedback::Feedback;
use crate::service::feedback::FeedbackContent;
use crate::service::feedback::PageEvent;

/// Most events in one request.
const EVENTS_MAX: usize = 1000;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(events))
}

/// Events, and the duels of their queries.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UbiBody {
    /// 1 to 1000 events as UBI 1.0 to 1.3 writes them.
    #[schema(value_type = Vec<UbiEvent>, min_items = 1, max_items = 1000)]
    events: Vec<Value>,
    /// By `query_id`, the `duel_id` of its page. For events whose `query_id` is not the `duel_id`
    /// itself.
    #[serde(default)]
    duels: HashMap<String, String>,
}

/// A UBI event: what of it is read. Everything else is passed over.
#[derive(Debug, Deserialize, ToSchema)]
struct UbiEvent {
    /// One of the experiment's `event_weights`; an event of another kind is ignored.
    #[schema(example = "click")]
    action_name: String,
    /// The `duel_id` of the page, or a key of `duels`.
    query_id: Option<String>,
    /// Who it was; not needed here.
    #[serde(rename = "client_id")]
    #[schema(value_type = Option<String>)]
    _client_id: Option<Value>,
    /// On what.
    event_attributes: Option<Attributes>,
}

/// On what an event was.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiEventAttributes)]
struct Attributes {
    /// The `duel_id` of the page, where `query_id` is another name.
    duel_id: Option<String>,
    /// The document.
    object: Option<ObjectOf>,
    /// Where it was, for an event without an object.
    position: Option<PositionOf>,
}

/// The document of an event.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiObject)]
struct ObjectOf {
    /// Its id, as in the rankings.
    object_id: Option<Id>,
}

/// UBI writes ids as strings or whole numbers.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiId)]
#[serde(untagged)]
enum Id {
    /// A string.
    Text(String),
    /// A whole number, which stands for its digits.
    Number(i64),
}

/// The position of an event.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiPosition)]
struct PositionOf {
    /// Place on the page, which UBI counts from 1.
    ordinal: Option<i64>,
}

/// What became of one event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum EventReceipt {
    /// It is a click, or what counts as one.
    Read(Receipt),
    /// It says nothing about the page.
    Passed(Passed),
}

/// An event that was passed over.
#[derive(Debug, Serialize, ToSchema)]
struct Passed {
    /// `ignored`.
    #[schema(example = "ignored")]
    status: Ignored,
    /// Why.
    detail: String,
}

/// An event that was passed over.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Ignored {
    /// Its `action_name` has no weight in the experiment.
    Ignored,
}

/// What became of events, in the order they were sent.
#[derive(Debug, Serialize, ToSchema)]
struct EventReceipts {
    /// One for each.
    results: Vec<EventReceipt>,
}

/// Report User Behavior Insights events
///
/// As they are, in any order, as often as they come. Each event is a piece of what was clicked on
/// the page of its `query_id` (`"final": false`): the duel is settled after the experiment's
/// `settle_after_seconds`, or by `feedback` with `final`. The duel is the one that
/// `event_attributes.duel_id` names, or `duels` for the `query_id`, or the `query_id` itself. The
/// document is `object.object_id`; only without one it is what stood at `position.ordinal`.
#[utoipa::path(post, path = "/experiments/{name}/feedback/ubi", tag = "duels", security(("key" = ["feedback"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    request_body(content = UbiBody, example = json!({
        "events": [{
            "action_name": "click", "query_id": "6f1c8f4e", "client_id": "c-1", "timestamp": "2026-11-21T16:00:00Z",
            "event_attributes": {"object": {"object_id": "doc-7"}, "position": {"ordinal": 2}}
        }],
        "duels": {"6f1c8f4e": "AgAAAAEqAwEBAAD_rQM..."}
    })),
    responses(
        (status = 200, body = EventReceipts, description = "What became of each event."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-archived`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: no events, or too many."),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json", description = "`unavailable` or `overloaded`: not durable; send the same again after `Retry-After` seconds.", headers(("retry-after" = u32))),
    ))]
async fn events(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<UbiBody>,
) -> ApiResult<Json<EventReceipts>> {
    let UbiBody { events, duels } = body;
    if events.is_empty() || events.len() > EVENTS_MAX {
        let detail = format!("`events` has {} items; it must have 1 to {EVENTS_MAX}", events.len());
        return Err(Problem::new(ProblemKind::InvalidRequest, format!("{detail}."))
            .field("/events", detail));
    }
    let loaded = state.service.experiment(&name).await?;
    let weights = &loaded.spec.pages.event_weights;
    let read: Vec<Result<Feedback, EventReceipt>> = events
        .into_iter()
        .map(|event| {
            let event: UbiEvent =
                serde_json::from_value(event).map_err(|error| invalid(error.to_string()))?;
            if !weights.contains_key(&event.action_name) {
                let shown: String = event.action_name.chars().take(100).collect();
                let detail = format!("`{shown}` has no weight in this experiment");
                return Err(EventReceipt::Passed(Passed { status: Ignored::Ignored, detail }));
            }
            piece(event, &duels).map_err(|detail| invalid(detail.to_owned()))
        })
        .collect();
    let good: Vec<Feedback> = read.iter().filter_map(|item| item.as_ref().ok().cloned()).collect();
    let mut received = state.service.receive(&name, &good).await?.into_iter();
    let results = read
        .into_iter()
        .map(|item| match item {
            Ok(_) => received
                .next()
                .map(|received| EventReceipt::Read(received.into()))
                .ok_or_else(|| Problem::internal("an event got no answer")),
            Err(receipt) => Ok(receipt),
        })
        .collect::<ApiResult<_>>()?;
    Ok(Json(EventReceipts { results }))
}

fn invalid(detail: String) -> EventReceipt {
    EventReceipt::Read(Receipt {
        status: ReceiptStatus::Invalid,
        position: None,
        detail: Some(detail),
    })
}

/// An event as a piece of the clicks on its page.
fn piece(event: UbiEvent, duels: &HashMap<String, String>) -> Result<Feedback, &'static str> {
    let (named, object, position) = match event.event_attributes {
        Some(Attributes { duel_id, object, position }) => (duel_id, object, position),
        None => (None, None, None),
    };
    let of_query =
        || event.query_id.as_ref().map(|query| duels.get(query).unwrap_or(query).clone());
    let duel_id = named
        .or_else(of_query)
        .ok_or("it names no duel: send `query_id`, or `event_attributes.duel_id`")?;
    let on = match (
        object.and_then(|object| object.object_id),
        position.and_then(|position| position.ordinal),
    ) {
        (Some(Id::Text(id)), _) => Clicked::Document(id),
        (Some(Id::Number(id)), _) => Clicked::Document(id.to_string()),
        (None, Some(ordinal)) => {
            let position = ordinal.checked_sub(1).and_then(|position| u64::try_from(position).ok());
            Clicked::Position(position.ok_or("`position.ordinal` counts from 1")?)
        }
        (None, None) => {
            return Err(
                "it names no document: send `event_attributes.object.object_id` or `position.ordinal`",
            );
        }
    };
    let clicks = vec![PageEvent { on, event: event.action_name }];
    Ok(Feedback { duel_id, content: FeedbackContent::Clicks { clicks, last: false } })
}
