//! `/v1/experiments/{name}/statistics`: results of interleaved pages.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa_axum::routes;

use super::etag::{tagged, unchanged};
use super::extract::PathOf;
use super::operation::Access;
use super::problem::{ApiResult, ProblemKind};
use super::routes::Routes;
use super::state::AppState;
use crate::access::Scope;
use crate::service::reports::statistics::Statistics;

pub(crate) fn routes() -> Routes {
    let (read, problems) = (Access::Scope(Scope::Read), &[ProblemKind::ExperimentNotFound]);
    Routes::new().operation(routes!(statistics), read, problems)
}

/// Results of interleaved pages
///
/// For each version of the method and each pair: wins, losses, ties and pages without a signal, Δ
/// with an interval that is descriptive only, and the number of pages still needed; and alarms.
/// Computed from counts, never from a scan of the log. The `ETag` is the log position.
#[utoipa::path(get, path = "/v1/experiments/{name}/statistics", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = Statistics, description = "The statistics.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn statistics(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    if let Some(unchanged) = unchanged(&headers, &loaded.fold()?.position().to_string()) {
        return Ok(unchanged);
    }
    let statistics = loaded.statistics()?;
    Ok(tagged(&statistics.position.to_string(), &statistics))
}
