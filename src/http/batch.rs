//! `/v1/experiments/{name}/batch`: for policies that adapt between batches only.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::duels::Duel;
use super::extract::Object;
use super::problem::ProblemDocument;
use super::{ApiResult, AppState, JsonBody, PathOf, Problem, ProblemKind};
use crate::clock::rfc3339;
use crate::service::batches::PostedResult;

/// Most duels of one lease.
const LEASE_MAX: u32 = 1000;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(batch)).routes(routes!(lease)).routes(routes!(results))
}

/// The open batch.
#[derive(Debug, Serialize, ToSchema)]
struct Batch {
    /// The experiment's name.
    experiment: String,
    /// Log position that this is at.
    position: u64,
    /// The batch's number, from 1; `null` when the policy has run all its batches.
    number: Option<u32>,
    /// When it opened.
    #[schema(format = DateTime)]
    opened_at: Option<String>,
    /// Comparisons that it asks for, over all pairs.
    needed: u64,
    /// Comparisons answered.
    answered: u64,
    /// Duels handed out by the answering process and neither answered nor expired.
    in_flight: u64,
    /// One row a pair.
    pairs: Vec<Pair>,
}

/// One pair of a batch.
#[derive(Debug, Serialize, ToSchema)]
struct Pair {
    /// Id of one ranker.
    left: String,
    /// Id of the other.
    right: String,
    /// Comparisons that the batch asks for.
    needed: u32,
    /// Comparisons answered.
    answered: u32,
    /// Duels handed out by the answering process and neither answered nor expired.
    in_flight: u32,
}

/// How far the open batch is
#[utoipa::path(get, path = "/experiments/{name}/batch", tag = "batches", security(("key" = ["read"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = Batch, description = "The open batch."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`not-a-batch-policy`."),
    ))]
async fn batch(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<Batch>> {
    let loaded = state.service.experiment(&name).await?;
    let open = state.service.batch(&name).await?;
    let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
    let pairs: Vec<_> = open
        .pairs
        .iter()
        .map(|(pair, in_flight)| Pair {
            left: id(pair.duel.first),
            right: id(pair.duel.second),
            needed: pair.needed,
            answered: pair.answered,
            in_flight: *in_flight,
        })
        .collect();
    let sum = |count: fn(&Pair) -> u32| pairs.iter().map(|pair| u64::from(count(pair))).sum();
    Ok(Json(Batch {
        experiment: name,
        position: open.position,
        number: open.number,
        opened_at: open.opened_at.map(rfc3339),
        needed: sum(|pair| pair.needed),
        answered: sum(|pair| pair.answered),
        in_flight: sum(|pair| pair.in_flight),
        pairs,
    }))
}

/// How many duels to lease.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LeaseBody {
    /// 1 to 1000.
    #[schema(minimum = 1, maximum = 1000, example = 100)]
    count: u32,
}

/// Duels of the open batch.
#[derive(Debug, Serialize, ToSchema)]
struct Lease {
    /// At most as many as were asked for; fewer, or none, when the batch does not need so many now.
    duels: Vec<Duel>,
}

/// Lease many duels of the open batch at once
///
/// For a pipeline that runs many queries. Each duel is answered through `feedback`; one that is not
/// answered in its time is handed out again.
#[utoipa::path(post, path = "/experiments/{name}/batch/lease", tag = "batches", security(("key" = ["decide"])), request_body = LeaseBody,
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = Lease, description = "The duels."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`not-a-batch-policy`, `experiment-paused`, or `experiment-archived`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`."),
    ))]
async fn lease(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<LeaseBody>,
) -> ApiResult<Json<Lease>> {
    if !(1..=LEASE_MAX).contains(&body.count) {
        let detail = format!("`count` is {}; it must be 1 to {LEASE_MAX}", body.count);
        return Err(
            Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).field("/count", detail)
        );
    }
    let duels = state.service.lease(&name, body.count as usize).await?;
    Ok(Json(Lease { duels: duels.into_iter().map(|duel| Duel::new(&name, duel)).collect() }))
}

/// Results of a batch that was run elsewhere.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultsBody {
    /// Number of the open batch.
    #[schema(example = 3)]
    batch: u32,
    /// Every pair of the batch once, with as many comparisons as it still needs.
    #[schema(value_type = Vec<ResultRow>)]
    results: Vec<Object<ResultRow>>,
}

/// Counts of one pair.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultRow {
    /// Id of one ranker.
    left: String,
    /// Id of the other.
    right: String,
    /// Comparisons that the one won.
    left_wins: u32,
    /// Comparisons that the other won.
    right_wins: u32,
    /// Comparisons without a winner.
    ties: u32,
}

/// What became of a posted batch.
#[derive(Debug, Serialize, ToSchema)]
struct ResultsReceipt {
    /// `recorded`, or `duplicate` when the same results were posted before.
    #[schema(example = "recorded")]
    status: &'static str,
    /// The batch's number.
    batch: u32,
    /// Where it stands in the log.
    position: u64,
}

/// Post a whole batch that was run elsewhere
///
/// Counts exactly once: the same results again are answered as a duplicate, others are refused.
#[utoipa::path(post, path = "/experiments/{name}/batch/results", tag = "batches", security(("key" = ["feedback"])), request_body = ResultsBody,
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = ResultsReceipt, description = "Recorded, or a repeat."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`batch-not-open`, `feedback-conflict` (other results of this batch were posted before), `not-a-batch-policy`, or `experiment-archived`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: `errors` says which pair is wrong."),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json", description = "`unavailable` or `overloaded`: not durable; send the same again after `Retry-After` seconds."),
    ))]
async fn results(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<ResultsBody>,
) -> ApiResult<Json<ResultsReceipt>> {
    let posted: Vec<_> = body
        .results
        .into_iter()
        .map(|Object(row)| PostedResult {
            left: row.left,
            right: row.right,
            left_wins: row.left_wins,
            right_wins: row.right_wins,
            ties: row.ties,
        })
        .collect();
    let (is_new, position) = state.service.post_batch(&name, body.batch, &posted).await?;
    Ok(Json(ResultsReceipt {
        status: if is_new { "recorded" } else { "duplicate" },
        batch: body.batch,
        position,
    }))
}
