//! `/v1/experiments/{name}/statistics`: what interleaved pages came to.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::ProblemDocument;
use super::standings::{tagged, unchanged};
use super::{ApiResult, AppState, PathOf};
use crate::service::reports::statistics::Statistics;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(statistics))
}

/// What interleaved pages came to
///
/// By version of the method and by pair: wins, losses, ties and pages that said nothing, Δ with an
/// interval that is descriptive only, how many more pages it takes, and what of it looks wrong.
/// Counts, never a scan of the log. The `ETag` is the log position.
#[utoipa::path(get, path = "/experiments/{name}/statistics", tag = "results", security(("key" = ["read"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the answer that the caller has."),
    ),
    responses(
        (status = 200, body = Statistics, description = "The statistics.", headers(("etag" = String))),
        (status = 304, description = "Nothing new."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
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
