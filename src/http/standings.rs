//! `/v1/experiments/{name}/standings` and `/regret`: what came of it so far.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::ProblemDocument;
use super::{ApiResult, AppState, PathOf};
use crate::service::reports::regret::RegretReport;
use crate::service::reports::standings::Standings;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(standings)).routes(routes!(regret))
}

/// Counts, scores and leaders
///
/// The `ETag` is the log position: `If-None-Match` with it answers 304 until something new is in
/// the log.
#[utoipa::path(get, path = "/experiments/{name}/standings", tag = "results", security(("key" = ["read"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the answer that the caller has."),
    ),
    responses(
        (status = 200, body = Standings, description = "The standings.", headers(("etag" = String))),
        (status = 304, description = "Nothing new."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
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

/// What exploring has cost
///
/// Nobody knows the true preferences of a live experiment, so all of it is estimated: the logged
/// duels priced with the scores of today's win rates (plug-in), and with the scores of many draws
/// of the preferences from their posterior, as mean and 95 % credible interval; beside what uniform
/// pairs would have cost over as many steps. Duels that were never answered are not in it.
#[utoipa::path(get, path = "/experiments/{name}/regret", tag = "results", security(("key" = ["read"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the answer that the caller has."),
    ),
    responses(
        (status = 200, body = RegretReport, description = "The estimates.", headers(("etag" = String))),
        (status = 304, description = "Nothing new."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
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

/// 304, if the caller has the state that `tag` names already (RFC 9110 §13.1.2, weak comparison).
pub(crate) fn unchanged(headers: &HeaderMap, tag: &str) -> Option<Response> {
    let known = headers.get(header::IF_NONE_MATCH)?.to_str().ok()?;
    let current = format!("\"{tag}\"");
    let same = known
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == current);
    same.then(|| with_etag(StatusCode::NOT_MODIFIED.into_response(), tag))
}

/// `body` with this `ETag`.
pub(crate) fn tagged(tag: &str, body: &impl Serialize) -> Response {
    with_etag(Json(body).into_response(), tag)
}

fn with_etag(mut response: Response, tag: &str) -> Response {
    // digits, dots and dashes in quotes are a valid header value
    if let Ok(value) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}
