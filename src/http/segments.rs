//! `/v1/experiments/{name}/segments`: the results of one ranker, split by segment.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

use super::etag::{tagged, unchanged};
use super::extract::{PathOf, QueryOf};
use super::operation::Access;
use super::problem::ApiResult;
use super::problem::ProblemKind::{CannotReplay, ExperimentNotFound};
use super::queried_ranker::queried_ranker;
use super::routes::Routes;
use super::state::AppState;
use crate::access::Scope;
use crate::service::reports::segments::SegmentsReport;

pub(crate) fn routes() -> Routes {
    let problems = &[ExperimentNotFound, CannotReplay];
    Routes::new().operation(routes!(segments), Access::Scope(Scope::Read), problems)
}

/// Whose results to return.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SegmentsQuery {
    /// Id of the ranker. The default is the winner of a concluded experiment, else the leader.
    #[param(nullable = false)]
    ranker: Option<String>,
}

/// Results of one ranker in each segment
///
/// For each segment that callers named, and each opponent: wins, losses, ties, and an interval of
/// the probability to win. All intervals hold together with a probability of 95 %, however often
/// you look. As for the verdict, only answers of complete cohorts count, and of each unit the
/// first. Reads the whole log, up to 200,000 entries.
#[utoipa::path(get, path = "/v1/experiments/{name}/segments", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        SegmentsQuery,
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = SegmentsReport, description = "The results.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn segments(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<SegmentsQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    let ranker = queried_ranker(&loaded.spec, query.ranker.as_deref())?;
    let report = state.service.segments(&loaded, ranker).await?;
    let index = loaded.spec.ranker_index(&report.ranker).unwrap_or_default();
    let tag = format!("{}-{index}", report.position);
    if let Some(unchanged) = unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    tagged(&state, &headers, &tag, report).await
}
