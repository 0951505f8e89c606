//! `/v1/experiments/{name}/batch`: batches, for policies that adapt only between batches.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::extract::{JsonBody, JsonText, Object, PathName, QueryOf, json};
use super::operations::Routes;
use super::problem::ProblemKind::{
    BatchNotOpen, ExperimentArchived, ExperimentPaused, FeedbackConflict, NotABatchPolicy,
};
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::IssuedDuel;
use crate::service::batches::{self, BatchPart, OpenBatch, Post, PostedResult, RecordedBatch};
use rankduel_engine::access::Scope;

/// Maximum number of duels in one lease.
const LEASE_MAX: u32 = 1000;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(batch), Some(Scope::Read), &[NotABatchPolicy])
        .operation(
            routes!(lease),
            Some(Scope::Decide),
            &[NotABatchPolicy, ExperimentPaused, ExperimentArchived],
        )
        .operation(
            routes!(results),
            Some(Scope::Feedback),
            &[BatchNotOpen, FeedbackConflict, NotABatchPolicy, ExperimentArchived],
        )
}

/// Pairs of the batch.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PairsQuery {
    /// Number of pairs before the first one; 0 by default.
    #[param(minimum = 0, nullable = false)]
    offset: Option<usize>,
    /// 1000 by default.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<usize>,
    /// Only pairs that need more answers; `false` by default.
    #[param(nullable = false)]
    missing: Option<bool>,
}

impl PairsQuery {
    fn part(&self) -> ApiResult<BatchPart> {
        let (offset, most) = (self.offset.unwrap_or(0), BatchPart::MAX);
        let limit = self.limit.unwrap_or(most);
        if !(1..=most).contains(&limit) {
            let detail = format!("`limit` is {limit}; it must be 1 to {most}");
            return Err(Problem::invalid(&detail).query("limit", detail));
        }
        Ok(BatchPart { offset, limit, missing: self.missing.unwrap_or(false) })
    }
}

/// Progress of the open batch
///
/// A caller that works through batches is done when `number` is `null`. `offset` and `limit` select
/// pairs; the sums are over all.
#[utoipa::path(get, path = "/v1/experiments/{name}/batch", tag = "batches",
    params(PairsQuery),
    responses(
        (status = 200, body = OpenBatch, description = "The open batch."),
    ))]
async fn batch(
    State(state): State<AppState>,
    PathName(name): PathName,
    QueryOf(query): QueryOf<PairsQuery>,
) -> ApiResult<Json<OpenBatch>> {
    Ok(Json(batches::batch(&state.service, &name, query.part()?).await?))
}

/// A request for duels of the open batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LeaseBody {
    #[schema(minimum = 1, maximum = 1000, example = 100)]
    count: u32,
}

/// Duels of the open batch.
#[derive(Debug, Serialize, ToSchema)]
struct Lease {
    /// At most `count`; fewer, or none, if the batch currently needs fewer.
    duels: Vec<IssuedDuel>,
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
    PathName(name): PathName,
    JsonBody(body): JsonBody<LeaseBody>,
) -> ApiResult<Response> {
    if !(1..=LEASE_MAX).contains(&body.count) {
        let detail = format!("`count` is {}; it must be 1 to {LEASE_MAX}", body.count);
        return Err(Problem::invalid(&detail).field("/count", detail));
    }
    let finish = |duels| Json(Lease { duels }).into_response();
    Ok(batches::lease(&state.service, &name, body.count as usize, finish).await?)
}

/// Results of a batch that was run elsewhere.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultsBody {
    /// Number of the open batch.
    #[schema(example = 3)]
    batch: u32,
    /// Number of this part, if the results of the batch are posted in parts. A number stands for
    /// one part of the batch, for ever. The batch is complete when all its pairs are.
    #[schema(minimum = 1, nullable = false)]
    part: Option<u32>,
    /// Every pair of the batch once, or any of them in a part, with as many comparisons as it still
    /// needs.
    #[schema(value_type = Vec<PostedResult>)]
    results: Vec<Object<PostedResult>>,
}

/// The result of posting a batch.
#[derive(Debug, Serialize, ToSchema)]
struct ResultsReceipt {
    /// `recorded`, or `duplicate` if the same results were posted before.
    #[schema(example = "recorded")]
    status: &'static str,
    batch: u32,
    position: u64,
}

/// Post the results of a batch that was run elsewhere
///
/// The results count exactly once. Posting the same results again returns `duplicate`, for ever;
/// posting different results is rejected, as are results of a batch that is not open.
#[utoipa::path(post, path = "/v1/experiments/{name}/batch/results", tag = "batches", request_body = ResultsBody,
    responses(
        (status = 200, body = ResultsReceipt, description = "Recorded, or a duplicate."),
    ))]
async fn results(
    State(state): State<AppState>,
    PathName(name): PathName,
    text: JsonText,
) -> ApiResult<Json<ResultsReceipt>> {
    let post = text.read(read_post).await?;
    let batch = post.batch;
    let recorded = batches::record_results(&state.service, &name, post).await?;
    let RecordedBatch { is_new, position } = recorded;
    Ok(Json(ResultsReceipt {
        status: if is_new { "recorded" } else { "duplicate" },
        batch,
        position,
    }))
}

fn read_post(text: &[u8]) -> ApiResult<Post> {
    let ResultsBody { batch, part, results } = json(text)?;
    if part == Some(0) {
        let detail = "`part` is 0; it must be 1 or more".to_owned();
        return Err(Problem::invalid(&detail).field("/part", detail));
    }
    Ok(Post { batch, part, results: results.into_iter().map(|Object(row)| row).collect() })
}
