//! `/v1/orders` and `/v1/experiments/{name}/orders`: what units bought.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::{JsonOrLines, Object, PathName, json};
use super::operations::Routes;
use super::problem::ProblemKind::{ExperimentArchived, NoOrders};
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::orders::{Order, OrderBody, OrderReceipt, counting, counting_one, receive};
use rankduel_engine::access::Scope;
use rankduel_engine::experiment_spec::FieldError;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ListFilter;

/// Most orders of a JSON array. A body of JSON lines has as many as its bytes hold.
const ORDERS_MAX: usize = 1000;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(orders), Some(Scope::Feedback), &[ExperimentArchived, NoOrders])
        .operation(routes!(orders_of_all), Some(Scope::Feedback), &[ExperimentArchived, NoOrders])
}

/// Several orders.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OrdersBody {
    // Their text: one that cannot be read costs no other.
    #[schema(value_type = Vec<OrderBody>, min_items = 1, max_items = 1000)]
    orders: Vec<Box<RawValue>>,
}

/// The results for several orders.
#[derive(Debug, Serialize, ToSchema)]
struct OrderReceipts {
    /// In the order of the orders; of lines, empty ones have none.
    results: Vec<OrderReceipt>,
}

type ReadOrders = Vec<Result<OrderBody, OrderReceipt>>;

/// Report what units bought
///
/// For an experiment with `decide_by`. The response is sent only after the orders are durable.
/// Sending an order again is safe: it counts once. Valid orders count even if others do not.
///
/// Send at most 1000 orders as JSON, or a file of JSON lines (`application/x-ndjson`), one order a
/// line, as large as the server accepts bodies: 2 MiB by default, about 10,000 orders.
#[utoipa::path(post, path = "/v1/experiments/{name}/orders", tag = "duels",
    request_body(content((OrdersBody = "application/json"), (OrderBody = "application/x-ndjson"))),
    responses((status = 200, body = OrderReceipts, description = "The result for each order.")))]
async fn orders(
    State(state): State<AppState>,
    PathName(name): PathName,
    body: JsonOrLines,
) -> ApiResult<Json<OrderReceipts>> {
    let orders = read(body).await?;
    let loaded = counting_one(&state.service, &name).await?;
    results(&state, &[loaded], orders).await
}

/// Report what units bought, to every experiment
///
/// As for one experiment. The orders go to every experiment with `decide_by` that the key includes
/// and that can count them. If all have ended, orders are `late`. After a 5xx, send them again.
#[utoipa::path(post, path = "/v1/orders", tag = "duels",
    request_body(content((OrdersBody = "application/json"), (OrderBody = "application/x-ndjson"))),
    responses((status = 200, body = OrderReceipts, description = "The result for each order.")))]
async fn orders_of_all(
    State(state): State<AppState>,
    caller: Caller,
    body: JsonOrLines,
) -> ApiResult<Json<OrderReceipts>> {
    let orders = read(body).await?;
    let experiments = counting(&state.service, &caller.may_list(ListFilter::default())).await?;
    results(&state, &experiments, orders).await
}

async fn results(
    state: &AppState,
    experiments: &[Arc<LoadedExperiment>],
    orders: ReadOrders,
) -> ApiResult<Json<OrderReceipts>> {
    let now = state.service.now_ms();
    let checked: Vec<Result<Order, _>> =
        orders.into_iter().map(|order| order.and_then(|order| order.check(now))).collect();
    Ok(Json(OrderReceipts { results: receive(&state.service, experiments, checked).await? }))
}

async fn read(JsonOrLines { text, is_lines }: JsonOrLines) -> ApiResult<ReadOrders> {
    text.read(move |text| if is_lines { read_lines(text) } else { read_array(text) }).await
}

fn read_array(text: &[u8]) -> ApiResult<ReadOrders> {
    let OrdersBody { orders } = json(text)?;
    if !(1..=ORDERS_MAX).contains(&orders.len()) {
        let detail = format!(
            "`orders` has {} items; it must have 1 to {ORDERS_MAX}: send a file as JSON lines",
            orders.len()
        );
        return Err(Problem::invalid(&detail).field("/orders", detail));
    }
    Ok(orders.iter().map(|order| read_order(order.get().as_bytes())).collect())
}

fn read_lines(text: &[u8]) -> ApiResult<ReadOrders> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let orders: ReadOrders = lines.filter(|line| !line.is_empty()).map(read_order).collect();
    if orders.is_empty() {
        let detail = "the body has no line with an order";
        return Err(Problem::invalid(detail).field("", detail));
    }
    Ok(orders)
}

fn read_order(text: &[u8]) -> Result<OrderBody, OrderReceipt> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read: Result<Object<OrderBody>, _> = serde_path_to_error::deserialize(&mut reader);
    let invalid = |pointer: String, error: &serde_json::Error| {
        let detail = super::extract::without_place(error);
        OrderReceipt::invalid(FieldError::new(pointer, detail))
    };
    let Object(order) = read.map_err(|error| {
        let pointer = super::extract::pointer(error.path());
        invalid(pointer, error.inner())
    })?;
    reader.end().map(|()| order).map_err(|error| invalid(String::new(), &error))
}
