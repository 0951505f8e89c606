//! `/v1/experiments/{name}/standings` and `/regret`.

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
use crate::service::reports::regret::RegretReport;
use crate::service::reports::standings::Standings;

pub(crate) fn routes() -> Routes {
    let (read, problems) = (Access::Scope(Scope::Read), &[ProblemKind::ExperimentNotFound]);
    Routes::new().operation(routes!(standings), read, problems).operation(
        routes!(regret),
        read,
        problems,
    )
}

/// Counts, scores and leaders
///
/// The `ETag` is the log position: a request with it in `If-None-Match` gets 304 until the log has
/// a new entry.
#[utoipa::path(get, path = "/v1/experiments/{name}/standings", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = Standings, description = "The standings.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn standings(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    if let Some(unchanged) = unchanged(&headers, &loaded.fold()?.position().to_string()) {
        return Ok(unchanged);
    }
    let standings = loaded.standings()?;
    Ok(tagged(&standings.position.to_string(), &standings))
}

/// Cost of exploration
///
/// The true preferences of a live experiment are unknown, so every number is an estimate of the cost
/// of the logged duels. The plug-in estimate uses the scores of the current win rates. The posterior
/// estimate uses the scores of many draws of the preferences from their posterior, and is given as
/// mean and 95 % credible interval. For comparison, both estimate the cost of uniform pairs over the
/// same number of steps. Duels without feedback are not included.
#[utoipa::path(get, path = "/v1/experiments/{name}/regret", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = RegretReport, description = "The estimates.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn regret(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    if let Some(unchanged) = unchanged(&headers, &loaded.fold()?.position().to_string()) {
        return Ok(unchanged);
    }
    let regret = state.service.regret_report(&loaded).await?;
    Ok(tagged(&regret.plug_in.position.to_string(), &*regret))
}
