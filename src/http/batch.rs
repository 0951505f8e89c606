//! `/v1/experiments/{name}/batch`: batches, for policies that adapt only between batches.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use dueling_bandits::BatchPair;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::duels::Duel;
use super::extract::{JsonBody, JsonText, Object, PathOf, QueryOf, json};
use super::operations::{Access, Routes};
use super::problem::ProblemKind::{
    BatchNotOpen, ExperimentArchived, ExperimentNotFound, ExperimentPaused, FeedbackConflict,
    NotABatchPolicy,
};
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::IssuedDuel;
use crate::service::batches::{BatchPart, PostedResult};
use rankduel_engine::access::Scope;
use rankduel_engine::clock::rfc3339;

/// Maximum number of duels in one lease.
const LEASE_MAX: u32 = 1000;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(
            routes!(batch),
            Access::Scope(Scope::Read),
            &[ExperimentNotFound, NotABatchPolicy],
        )
        .operation(
            routes!(lease),
            Access::Scope(Scope::Decide),
            &[ExperimentNotFound, NotABatchPolicy, ExperimentPaused, ExperimentArchived],
        )
        .operation(
            routes!(results),
            Access::Scope(Scope::Feedback),
            &[
                ExperimentNotFound,
                BatchNotOpen,
                FeedbackConflict,
                NotABatchPolicy,
                ExperimentArchived,
            ],
        )
}

/// The open batch.
#[derive(Debug, Serialize, ToSchema)]
struct Batch {
    /// Name of the experiment.
    experiment: String,
    /// Log position of these counts.
    position: u64,
    /// Number of the batch, starting at 1; `null` if no batch is open: the policy has run all its
    /// batches, or the experiment is concluded.
    number: Option<u32>,
    /// Time at which the batch opened; `null` if no batch is open.
    #[schema(format = DateTime)]
    opened_at: Option<String>,
    /// Comparisons in the batch, over all pairs.
    needed: u64,
    /// Comparisons answered so far.
    answered: u64,
    /// Duels issued by the responding server that are neither answered nor expired.
    in_flight: u64,
    /// Number of pairs in the batch.
    pairs_total: usize,
    /// One row for each selected pair; none if no batch is open. Their order is the same until the
    /// batch is complete.
    pairs: Vec<Pair>,
}

/// Pairs of the batch.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PairsQuery {
    /// Number of pairs before the first one; 0 by default.
    #[param(minimum = 0, nullable = false)]
    offset: Option<usize>,
    /// Most pairs, 1 to 1000; 1000 by default.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<usize>,
}

impl PairsQuery {
    fn part(&self) -> ApiResult<BatchPart> {
        let (offset, most) = (self.offset.unwrap_or(0), BatchPart::MAX);
        let limit = self.limit.unwrap_or(most);
        if !(1..=most).contains(&limit) {
            let detail = format!("`limit` is {limit}; it must be 1 to {most}");
            return Err(Problem::invalid(&detail).query("limit", detail));
        }
        Ok(BatchPart { offset, limit })
    }
}

/// One pair of a batch.
#[derive(Debug, Serialize, ToSchema)]
struct Pair {
    /// Id of the first ranker.
    left: String,
    /// Id of the second ranker.
    right: String,
    /// Comparisons of this pair in the batch.
    needed: u32,
    /// Comparisons answered so far.
    answered: u32,
    /// Duels issued by the responding server that are neither answered nor expired.
    in_flight: u32,
}

/// Progress of the open batch
///
/// A caller that works through batches is done when `number` is `null`. At most 1000 pairs are
/// returned; `offset` and `limit` select them. The sums are over all pairs.
#[utoipa::path(get, path = "/v1/experiments/{name}/batch", tag = "batches",
    params(PairsQuery),
    responses(
        (status = 200, body = Batch, description = "The open batch."),
    ))]
async fn batch(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<PairsQuery>,
) -> ApiResult<Json<Batch>> {
    let loaded = state.service.experiment(&name).await?;
    let open = state.service.batch(&name, query.part()?).await?;
    let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
    let pair = |(pair, in_flight): (BatchPair, u32)| Pair {
        left: id(pair.duel.first),
        right: id(pair.duel.second),
        needed: pair.needed,
        answered: pair.answered,
        in_flight,
    };
    Ok(Json(Batch {
        experiment: name,
        position: open.position,
        number: open.number,
        opened_at: open.opened_at.map(rfc3339),
        needed: open.needed,
        answered: open.answered,
        in_flight: open.in_flight,
        pairs_total: open.pairs_total,
        pairs: open.pairs.into_iter().map(pair).collect(),
    }))
}

/// A request for duels of the open batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LeaseBody {
    /// Number of duels, 1 to 1000.
    #[schema(minimum = 1, maximum = 1000, example = 100)]
    count: u32,
}

/// Duels of the open batch.
#[derive(Debug, Serialize, ToSchema)]
struct Lease {
    /// At most `count` duels; fewer, or none, if the batch currently needs fewer.
    duels: Vec<Duel>,
}

/// Lease many duels of the open batch at once
///
/// For a pipeline that runs many queries. Send the outcome of each duel to `feedback`. If a duel
/// expires without feedback, its comparison is issued again.
#[utoipa::path(post, path = "/v1/experiments/{name}/batch/lease", tag = "batches", request_body = LeaseBody,
    responses(
        (status = 200, body = Lease, description = "The duels."),
    ))]
async fn lease(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<LeaseBody>,
) -> ApiResult<Response> {
    if !(1..=LEASE_MAX).contains(&body.count) {
        let detail = format!("`count` is {}; it must be 1 to {LEASE_MAX}", body.count);
        return Err(Problem::invalid(&detail).field("/count", detail));
    }
    let experiment = name.clone();
    let finish = move |issued: Vec<IssuedDuel>| {
        let duels = issued.into_iter().map(|duel| Duel::new(&experiment, duel)).collect();
        Json(Lease { duels }).into_response()
    };
    Ok(state.service.lease(&name, body.count as usize, finish).await?)
}

/// The results of a batch that was run elsewhere.
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

/// The results of one pair.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultRow {
    /// Id of the first ranker.
    left: String,
    /// Id of the second ranker.
    right: String,
    /// Comparisons won by the first ranker.
    left_wins: u32,
    /// Comparisons won by the second ranker.
    right_wins: u32,
    /// Comparisons without a winner.
    ties: u32,
}

/// The result of posting a batch.
#[derive(Debug, Serialize, ToSchema)]
struct ResultsReceipt {
    /// `recorded`, or `duplicate` if the same results were posted before.
    #[schema(example = "recorded")]
    status: &'static str,
    /// Number of the batch.
    batch: u32,
    /// Log position of the results.
    position: u64,
}

/// Post the results of a batch that was run elsewhere
///
/// The results count exactly once. Posting the same results again returns `duplicate`; posting
/// different results is rejected.
#[utoipa::path(post, path = "/v1/experiments/{name}/batch/results", tag = "batches", request_body = ResultsBody,
    responses(
        (status = 200, body = ResultsReceipt, description = "Recorded, or a duplicate."),
    ))]
async fn results(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    text: JsonText,
) -> ApiResult<Json<ResultsReceipt>> {
    let (batch, posted) = text.read(read_results).await?;
    let (is_new, position) = state.service.post_batch(&name, batch, posted).await?;
    Ok(Json(ResultsReceipt {
        status: if is_new { "recorded" } else { "duplicate" },
        batch,
        position,
    }))
}

/// The number of the batch, and its results.
fn read_results(text: &[u8]) -> ApiResult<(u32, Vec<PostedResult>)> {
    let ResultsBody { batch, results } = json(text)?;
    let posted = results.into_iter().map(|Object(row)| PostedResult {
        left: row.left,
        right: row.right,
        left_wins: row.left_wins,
        right_wins: row.right_wins,
        ties: row.ties,
    });
    Ok((batch, posted.collect()))
}
