//! `/v1/experiments/{name}/interleave`: combine two rankings into one page.

use axum::extract::State;
use axum::response::Response;
use interleaving::Pin;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::{self, JsonText, Object, PathName};
use super::json_response::json_response;
use super::operations::Routes;
use super::parameters::check_unit;
use super::problem::ApiResult;
use super::problem::ProblemKind::{DuelExpired, ExperimentArchived, InvalidDuel};
use super::state::AppState;
use crate::service::feedback::{IgnoredValue, ValuesOfPage};
use crate::service::pages::{IssuedPage, PageParts, PageRequest};
use crate::service::units::NamedAudience;
use rankduel_engine::access::Scope;
use rankduel_engine::clock::rfc3339;
use rankduel_store::audience::Segment;

/// The path of [`interleave`].
pub(super) const INTERLEAVE: &str = "/v1/experiments/{name}/interleave";

pub(crate) fn routes() -> Routes {
    Routes::new().operation(
        routes!(interleave),
        Some(Scope::Decide),
        &[ExperimentArchived, DuelExpired, InvalidDuel],
    )
}

/// Two rankings to interleave.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct InterleaveBody {
    /// The `duel_id` from `next-duel`; for later pages, that from the first page.
    duel_id: String,
    /// Document ids of the left ranker's ranking, best first, of 1 to 1024 bytes each. Only the
    /// first occurrence of a repeated id counts.
    #[schema(max_items = 10_000)]
    left: Vec<String>,
    /// The same for the right ranker. A self-duel shows only the left ranking, so this one may be
    /// omitted.
    #[schema(max_items = 10_000, nullable = false)]
    right: Option<Vec<String>>,
    /// Number of slots on this page; `offset` plus `length` is at most 1000.
    #[schema(minimum = 1, maximum = 1000, example = 10)]
    length: u32,
    /// Number of slots before this page; 0 by default.
    #[serde(default)]
    #[schema(maximum = 999)]
    offset: u32,
    /// The unit that sees the page, if `next-duel` was not told.
    #[schema(max_length = 256, nullable = false)]
    unit: Option<String>,
    /// The segment of the page, if `next-duel` was not told.
    #[schema(value_type = Option<String>, max_length = 32, example = "mobile", nullable = false)]
    segment: Option<Segment>,
    /// Documents at fixed positions, such as advertisements.
    #[serde(default)]
    #[schema(value_type = Vec<PinBody>, max_items = 100)]
    pinned: Vec<Object<PinBody>>,
    /// Values of the experiment's metrics that are known when the page is made, by ranker and
    /// metric, as in feedback.
    #[schema(value_type = Option<HashMap<String, HashMap<String, f64>>>, nullable = false, example = json!({"bm25": {"latency_ms": 12}, "neural": {"latency_ms": 41}}))]
    metrics: Option<Box<RawValue>>,
}

/// A document at a fixed position. It is removed from both rankings and earns no credit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinBody {
    /// Id of the document. It need not be in the rankings.
    document: String,
    /// Position in the shown list, from 0 on the first page.
    #[schema(maximum = 999)]
    position: u32,
}

/// The requested part of the shown list.
pub(crate) fn page_request(offset: u32, length: u32, pinned: Vec<Object<PinBody>>) -> PageRequest {
    let wide = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let pin = |Object(PinBody { document, position })| Pin { document, position: wide(position) };
    PageRequest {
        offset: wide(offset),
        length: wide(length),
        pinned: pinned.into_iter().map(pin).collect(),
    }
}

/// A page to show.
#[derive(Debug, Serialize, ToSchema)]
struct InterleavedPage {
    /// Signed id of the duel, with the encrypted data needed to credit clicks; send it back with
    /// the clicks.
    #[schema(example = "AgAAAAEqAwEBAAD_rQM...")]
    duel_id: String,
    #[schema(example = "search-ranking")]
    experiment: String,
    /// Whether one ranker is shown alone.
    self_duel: bool,
    /// Feedback after this time is rejected.
    #[schema(format = DateTime)]
    expires_at: String,
    /// Values of metrics that were ignored, and why. Omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    ignored: Vec<IgnoredValue>,
    #[serde(flatten)]
    page: PageParts,
}

/// Interleave two rankings
///
/// Combines the rankings of the two rankers chosen by `next-duel` with the experiment's method.
/// Neither the slots nor the new `duel_id` reveal which ranker a document belongs to. The same
/// duel, rankings and pins give the same list on every server, so the next page of the list can
/// come from another one. Only values of metrics, and first pages where a metric is measured for
/// each ranker, are written to the log.
#[utoipa::path(post, path = INTERLEAVE, tag = "duels", request_body = InterleaveBody,
    responses(
        (status = 200, body = InterleavedPage, description = "The page."),
    ))]
async fn interleave(
    State(state): State<AppState>,
    PathName(name): PathName,
    text: JsonText,
) -> ApiResult<Response> {
    make(&state, &name, text).await
}

/// [`interleave`] for a duel of the experiment with this name.
pub(super) async fn make(state: &AppState, name: &str, text: JsonText) -> ApiResult<Response> {
    let InterleaveBody { duel_id, left, right, length, offset, unit, segment, pinned, metrics } =
        text.read(extract::json).await?;
    check_unit(unit.as_deref())?;
    let audience = NamedAudience { unit: unit.as_deref(), segment };
    let page = page_request(offset, length, pinned);
    let (service, experiment) = (&state.service, name.to_owned());
    let ValuesOfPage { counted, ignored } = match metrics {
        Some(metrics) => service.read_values(name, &duel_id, metrics.get(), audience).await?,
        None => ValuesOfPage::default(),
    };
    let finish = move |issued: IssuedPage| {
        let IssuedPage { duel_id, self_duel, expires_at, page } = issued;
        let expires_at = rfc3339(expires_at);
        let bytes = duel_id.len() + page.bytes();
        let page = InterleavedPage { duel_id, experiment, self_duel, expires_at, ignored, page };
        json_response(&page, bytes)
    };
    let rankings = [Some(left), right];
    let page = service.interleave(name, &duel_id, rankings, page, audience, finish).await?;
    if let Some((issuer, values)) = counted {
        issuer.note_values(values);
    }
    Ok(page)
}
