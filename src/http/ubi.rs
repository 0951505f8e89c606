//! `/v1/experiments/{name}/feedback/ubi`: clicks as User Behavior Insights events.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::{self, JsonText, Object, PathName, UniqueKeys, with_integers, without_place};
use super::feedback::receive_all;
use super::operations::Routes;
use super::problem::ProblemKind::ExperimentArchived;
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::feedback::{Clicked, Feedback, FeedbackContent, PageEvent, Receipt};
use crate::service::orders::{LineBody, OrderBody, OrderReceipt, receive};
use crate::service::units::unit_error;
use rankduel_engine::access::Scope;
use rankduel_engine::metrics::{FeedbackStatus, OrderStatus};

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
    /// One of the experiment's `event_weights`, or the `event` of its `decide_by`; events of other
    /// kinds are ignored.
    #[schema(example = "click")]
    action_name: String,
    /// The `duel_id` of the page, or a key of `duels`. Events of a page whose `duel_id` is empty are
    /// `ignored`: it takes no part in the experiment.
    query_id: Option<String>,
    /// The unit of the page, if `next-duel` was not told.
    #[schema(value_type = Option<Id>)]
    client_id: Option<Value>,
    /// The time of an order. Clicks may have any.
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    timestamp: Option<Value>,
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
    /// The id of an order. Without it, the other members make one; leave it out if each product of
    /// an order has an event.
    order_id: Option<Id>,
    /// The price of the ordered piece.
    value: Option<f64>,
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
#[serde(untagged, expecting = "an id or a place must be a string or a whole number")]
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
///
/// An event whose `action_name` is the `event` of the experiment's `decide_by` is an order of one
/// line, and needs no duel: `client_id` is the unit.
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
    let loaded = state.service.experiment(&name).await?;
    let order = loaded.spec.decide_by.as_ref().map(|it| it.event.clone());
    let name_of_orders = order.clone();
    let events = text.read(move |text| read_events(text, order.as_deref())).await?;
    let weights = &loaded.spec.pages.event_weights;
    let is_read =
        |action: &String| weights.contains_key(action) || Some(action) == name_of_orders.as_ref();
    let now = state.service.now_ms();
    let (mut items, mut orders, mut are_orders) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        are_orders.push(matches!(event, Ok(ReadEvent { content: Ok(Content::Order(_)), .. })));
        items.push(match event {
            Err(detail) => Err(Receipt::invalid(detail)),
            Ok(ReadEvent { content: Ok(Content::Order(order)), .. }) => {
                orders.push(order.check(now));
                continue;
            }
            Ok(ReadEvent { action, .. }) if !is_read(&action) => {
                let shown: String = action.chars().take(100).collect();
                let detail = format!("`{shown}` has no weight in this experiment");
                Err(Receipt::without_weight(detail))
            }
            Ok(ReadEvent { content: Ok(Content::Clicks(clicks)), .. }) => Ok(clicks),
            Ok(ReadEvent { content: Err(detail), .. }) => Err(Receipt::invalid(detail)),
        });
    }
    let mut clicks = receive_all(&state, &name, items).await?.into_iter();
    let orders = match orders.is_empty() {
        true => Vec::new(),
        false => receive(&state.service, &[loaded], orders).await?,
    };
    let mut orders = orders.into_iter().map(of_order);
    let results = are_orders.into_iter();
    let results =
        results.filter_map(|is_order| if is_order { orders.next() } else { clicks.next() });
    Ok(Json(EventReceipts { results: results.collect() }))
}

/// The result of an order as that of an event.
fn of_order(receipt: OrderReceipt) -> Receipt {
    let status = match receipt.status {
        OrderStatus::Recorded => FeedbackStatus::Recorded,
        OrderStatus::Duplicate => FeedbackStatus::Duplicate,
        OrderStatus::Late => FeedbackStatus::Late,
        OrderStatus::Conflict => FeedbackStatus::Conflict,
        OrderStatus::Invalid => FeedbackStatus::Invalid,
    };
    let OrderReceipt { detail, pointer, .. } = receipt;
    Receipt { status, position: None, detail, ignored: Vec::new(), pointer }
}

/// An event that is well formed.
struct ReadEvent {
    action: String,
    /// The clicks or the order of the event, or why it has none.
    content: Result<Content, String>,
}

enum Content {
    Clicks(Feedback),
    Order(OrderBody),
}

/// The events of a body, each with its error if it is malformed. Those with the name `order` are
/// orders.
fn read_events(text: &[u8], order: Option<&str>) -> ApiResult<Vec<Result<ReadEvent, String>>> {
    let UbiBody { events, duels: UniqueKeys(duels) } = extract::json(text)?;
    let duels = duels.into_iter().map(|(query, duel)| (query, Arc::from(duel))).collect();
    if events.is_empty() || events.len() > EVENTS_MAX {
        let detail = format!("`events` has {} items; it must have 1 to {EVENTS_MAX}", events.len());
        return Err(Problem::invalid(&detail).field("/events", detail));
    }
    let read = |event: Box<RawValue>| {
        let error = |error| without_place(&error);
        let Action { action_name } = serde_json::from_str(event.get()).map_err(error)?;
        let event = serde_json::from_str(event.get()).map_err(error);
        let content = event.and_then(|event: UbiEvent| match Some(&*action_name) == order {
            true => order_of(event).map(Content::Order),
            false => part(event, &duels).map(Content::Clicks),
        });
        Ok(ReadEvent { action: action_name, content })
    };
    Ok(events.into_iter().map(read).collect())
}

impl UbiEvent {
    fn attributes(&self) -> Result<Attributes, String> {
        match &self.event_attributes {
            // Some languages write an empty map as an empty list.
            Some(list) if serde_json::from_str::<[(); 0]>(list.get()).is_ok() => {
                Ok(Attributes::default())
            }
            Some(attributes) => {
                let text = attributes.get();
                let read = serde_json::from_str(text).or_else(|error| {
                    let integers = with_integers(text.as_bytes()).ok_or(error)?;
                    serde_json::from_slice(&integers)
                });
                read.map_err(|error| format!("`event_attributes`: {}", without_place(&error)))
            }
            None => Ok(Attributes::default()),
        }
    }

    fn unit(&self) -> Option<String> {
        match &self.client_id {
            Some(Value::String(unit)) => Some(unit.clone()),
            Some(Value::Number(unit)) if !unit.is_f64() => Some(unit.to_string()),
            _ => None,
        }
    }
}

/// The event as an order of one line.
fn order_of(event: UbiEvent) -> Result<OrderBody, String> {
    let Attributes { object, order_id, value, .. } = event.attributes()?;
    let document = object.and_then(|object| object.object_id).map(Id::text);
    let document =
        document.ok_or("the order has no document: send `event_attributes.object.object_id`")?;
    let at = match &event.timestamp {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            return Err(format!("`timestamp` of an order must be a text, not `{other}`"));
        }
    };
    let unit = event.unit();
    let order_id = order_id.map(Id::text).unwrap_or_else(|| {
        let members = json!([unit, document, at, value]).to_string();
        Sha256::digest(members).iter().map(|byte| format!("{byte:02x}")).collect()
    });
    let line = LineBody { document, value, quantity: None };
    Ok(OrderBody { order_id, unit, at, lines: Some(vec![Object(line)]), cancelled: false })
}

/// The event as a part of the clicks on its page.
fn part(event: UbiEvent, duels: &HashMap<String, Arc<str>>) -> Result<Feedback, String> {
    let Attributes { duel_id, object, position, .. } = event.attributes()?;
    let unit = event.unit();
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
    let unit = unit.filter(|unit| unit_error(unit).is_none());
    Ok(Feedback {
        duel_id,
        content: Some(FeedbackContent::Clicks { clicks, last: false }),
        unit,
        segment: None,
        metrics: None,
    })
}
