//! `/v1/experiments/{name}/statistics`: results of interleaved pages.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

use super::etag::{tagged, unchanged};
use super::extract::{PathOf, QueryOf};
use super::operation::Access;
use super::problem::{ApiResult, ProblemKind};
use super::queried_ranker::queried_ranker;
use super::routes::Routes;
use super::state::AppState;
use crate::access::Scope;
use crate::service::reports::statistics::Statistics;

pub(crate) fn routes() -> Routes {
    let (read, problems) = (Access::Scope(Scope::Read), &[ProblemKind::ExperimentNotFound]);
    Routes::new().operation(routes!(statistics), read, problems)
}

/// Which pairs to return.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PairsQuery {
    /// Id of a ranker: only its pairs.
    #[param(nullable = false)]
    ranker: Option<String>,
}

/// Results of interleaved pages
///
/// For each version of the method and each pair: wins, losses, ties and pages without a signal, Δ
/// with an interval that is descriptive only, and the number of pages still needed; and alarms.
/// Computed from counts, never from a scan of the log. A version has at most 1000 pairs, those with
/// most pages; `ranker` selects the pairs of one ranker. The `ETag` has the log position.
#[utoipa::path(get, path = "/v1/experiments/{name}/statistics", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        PairsQuery,
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = Statistics, description = "The statistics.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn statistics(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<PairsQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    let ranker = queried_ranker(&loaded.spec, query.ranker.as_deref())?;
    let tag = |position: u64| match ranker {
        Some(ranker) => format!("{position}-{ranker}"),
        None => position.to_string(),
    };
    if let Some(unchanged) = unchanged(&headers, &tag(loaded.fold()?.position())) {
        return Ok(unchanged);
    }
    let statistics = state.service.statistics(&loaded, ranker).await?;
    tagged(&state, &headers, &tag(statistics.position), statistics).await
}
