//! `/v1/experiments/{name}/feedback/ubi`: clicks as User Behavior Insights events.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::{JsonText, PathName, UniqueKeys, json, without_place};
use super::feedback::receive_all;
use super::operations::Routes;
use super::problem::ProblemKind::ExperimentArchived;
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::feedback::{Clicked, Feedback, FeedbackContent, PageEvent, Receipt};
use crate::service::units::unit_error;
use rankduel_engine::access::Scope;

/// Maximum number of events in one request.
const EVENTS_MAX: usize = 1000;

pub(crate) fn routes() -> Routes {
    Routes::new().operation(routes!(events), Some(Scope::Feedback), &[ExperimentArchived])
}

/// Events, and the duels they belong to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UbiBody {
    /// In the format of UBI 1.0 to 1.3.
    #[schema(value_type = Vec<UbiEvent>, min_items = 1, max_items = 1000)]
    events: Vec<Box<RawValue>>,
    /// The `duel_id` of each `query_id`, for events whose `query_id` is not itself a `duel_id`.
    #[serde(default)]
    #[schema(value_type = HashMap<String, String>)]
    duels: UniqueKeys<String>,
}

/// The members of a UBI event that are read. All others are ignored.
#[derive(Debug, Deserialize, ToSchema)]
struct UbiEvent {
    /// One of the experiment's `event_weights`; events of other kinds are ignored.
    #[schema(example = "click")]
    action_name: String,
    /// The `duel_id` of the page, or a key of `duels`. Events of a page whose `duel_id` is empty are
    /// `ignored`: it takes no part in the experiment.
    query_id: Option<String>,
    /// The unit of the page, if `next-duel` was not told.
    #[schema(value_type = Option<Id>)]
    client_id: Option<Value>,
    /// An empty list is as none.
    #[schema(value_type = Option<Attributes>)]
    event_attributes: Option<Box<RawValue>>,
}

/// The member of a UBI event that tells whether the others are read.
#[derive(Debug, Deserialize)]
struct Action {
    action_name: String,
}

/// The target of an event.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = UbiEventAttributes)]
struct Attributes {
    /// The `duel_id` of the page, if `query_id` is something else.
    duel_id: Option<String>,
    object: Option<ObjectOf>,
    /// For an event without an object.
    position: Option<PositionOf>,
}

/// The document of an event.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiObject)]
struct ObjectOf {
    object_id: Option<Id>,
}

/// An id in UBI: a string or an integer.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiId)]
#[serde(untagged)]
enum Id {
    /// A string.
    Text(String),
    /// An integer, read as its decimal digits.
    Number(i64),
}

impl Id {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

/// The position of an event.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UbiPosition)]
struct PositionOf {
    /// On the page, also as a string; UBI counts from 1.
    #[schema(value_type = Option<i64>)]
    ordinal: Option<Id>,
}

/// The results for the events.
#[derive(Debug, Serialize, ToSchema)]
struct EventReceipts {
    /// In the order of the events.
    results: Vec<Receipt>,
}

/// Report User Behavior Insights events
///
/// Send the events unchanged, in any order, repeated or not. Each event is a part of the clicks on
/// the page of its duel, as with `"final": false` in `feedback`. The duel is settled after the
/// experiment's `settle_after_seconds`, or by `feedback` with `final`.
///
/// The duel of an event is `event_attributes.duel_id`, else the entry of `duels` for its
/// `query_id`, else its `query_id`. The document is `object.object_id`, else the document at
/// `position.ordinal`.
#[utoipa::path(post, path = "/v1/experiments/{name}/feedback/ubi", tag = "duels",
    request_body(content = UbiBody, example = json!({
        "events": [{
            "action_name": "click", "query_id": "6f1c8f4e", "client_id": "c-1", "timestamp": "2026-11-21T16:00:00Z",
            "event_attributes": {"object": {"object_id": "doc-7"}, "position": {"ordinal": 2}}
        }],
        "duels": {"6f1c8f4e": "AgAAAAEqAwEBAAD_rQM..."}
    })),
    responses(
        (status = 200, body = EventReceipts, description = "The result for each event."),
    ))]
async fn events(
    State(state): State<AppState>,
    PathName(name): PathName,
    text: JsonText,
) -> ApiResult<Json<EventReceipts>> {
    let events = text.read(read_events).await?;
    let loaded = state.service.experiment(&name).await?;
    let weights = &loaded.spec.pages.event_weights;
    let items = events
        .into_iter()
        .map(|event| {
            let ReadEvent { action, part } = event.map_err(Receipt::invalid)?;
            if !weights.contains_key(&action) {
                let shown: String = action.chars().take(100).collect();
                let detail = format!("`{shown}` has no weight in this experiment");
                return Err(Receipt::without_weight(detail));
            }
            part.map_err(Receipt::invalid)
        })
        .collect();
    let results = receive_all(&state, &name, items).await?;
    Ok(Json(EventReceipts { results }))
}

/// An event that is well formed.
struct ReadEvent {
    action: String,
    /// The event as feedback, or why it is none.
    part: Result<Feedback, String>,
}

/// The events of a body, each with its error if it is malformed.
fn read_events(text: &[u8]) -> ApiResult<Vec<Result<ReadEvent, String>>> {
    let UbiBody { events, duels: UniqueKeys(duels) } = json(text)?;
    let duels = duels.into_iter().map(|(query, duel)| (query, Arc::from(duel))).collect();
    if events.is_empty() || events.len() > EVENTS_MAX {
        let detail = format!("`events` has {} items; it must have 1 to {EVENTS_MAX}", events.len());
        return Err(Problem::invalid(&detail).field("/events", detail));
    }
    let read = |event: Box<RawValue>| {
        let error = |error| without_place(&error);
        let Action { action_name } = serde_json::from_str(event.get()).map_err(error)?;
        let event = serde_json::from_str(event.get()).map_err(error);
        let part = event.and_then(|event| part(event, &duels));
        Ok(ReadEvent { action: action_name, part })
    };
    Ok(events.into_iter().map(read).collect())
}

/// The event as a part of the clicks on its page.
fn part(event: UbiEvent, duels: &HashMap<String, Arc<str>>) -> Result<Feedback, String> {
    let Attributes { duel_id, object, position } = match event.event_attributes {
        // Some languages write an empty map as an empty list.
        Some(list) if serde_json::from_str::<[(); 0]>(list.get()).is_ok() => Attributes::default(),
        Some(attributes) => serde_json::from_str(attributes.get())
            .map_err(|error| format!("`event_attributes`: {}", without_place(&error)))?,
        None => Attributes::default(),
    };
    // the `duel_id` of a page that takes no part is empty
    let duel_id = match (duel_id, event.query_id) {
        (Some(id), Some(query)) if id.is_empty() => duels.get(&query).map_or(id.into(), Arc::clone),
        (Some(id), _) => id.into(),
        (None, Some(query)) => duels.get(&query).map_or(query.into(), Arc::clone),
        (None, None) => {
            return Err(
                "the event has no duel: send `query_id` or `event_attributes.duel_id`".into()
            );
        }
    };
    let document = object.and_then(|object| object.object_id).map(Id::text);
    let ordinal = position.and_then(|position| position.ordinal).map(Id::text);
    let on = match (document.filter(|id| !id.is_empty()), ordinal) {
        (Some(id), _) => Clicked::Document(id),
        (None, Some(ordinal)) => {
            let ordinal = ordinal.parse::<u64>().ok();
            let position = ordinal.and_then(|ordinal| ordinal.checked_sub(1));
            Clicked::Position(position.ok_or("`position.ordinal` is a number from 1")?)
        }
        (None, None) => {
            return Err("the event has no document: send `event_attributes.object.object_id` or \
                        `position.ordinal`"
                .to_owned());
        }
    };
    let clicks = vec![PageEvent { on, event: event.action_name }];
    // an id that cannot be a unit is as none: the event still counts
    let unit = match event.client_id {
        Some(Value::String(unit)) => Some(unit),
        Some(Value::Number(unit)) if !unit.is_f64() => Some(unit.to_string()),
        _ => None,
    }
    .filter(|unit| unit_error(unit).is_none());
    Ok(Feedback {
        duel_id,
        content: Some(FeedbackContent::Clicks { clicks, last: false }),
        unit,
        segment: None,
        metrics: None,
    })
}
