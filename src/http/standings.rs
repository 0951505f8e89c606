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
use crate::experiment::standings::{RegretEstimate, Standings};

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(standings)).routes(routes!(regret))
}

/// Counts, scores and leaders
///
/// The `ETag` is the log position: `If-None-Match` with it answers 304 until something new is in the log.
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
    let live = state.service.experiment(&name).await?;
    unless_known(&headers, live.fold()?.position(), || {
        let standings = live.standings()?;
        Ok(tagged(standings.position, &standings))
    })
}

/// What exploring has cost
///
/// An estimate: the logged duels priced with the Copeland scores of today's win rates, beside what uniform pairs would
/// have cost.
#[utoipa::path(get, path = "/experiments/{name}/regret", tag = "results", security(("key" = ["read"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the answer that the caller has."),
    ),
    responses(
        (status = 200, body = RegretEstimate, description = "The estimate.", headers(("etag" = String))),
        (status = 304, description = "Nothing new."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
    ))]
async fn regret(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let live = state.service.experiment(&name).await?;
    unless_known(&headers, live.fold()?.position(), || {
        let regret = live.regret()?;
        Ok(tagged(regret.position, &regret))
    })
}

fn etag(position: u64) -> String {
    format!("\"{position}\"")
}

/// 304, if the caller has the state at `position` already (RFC 9110 §13.1.2, weak comparison).
fn unchanged(headers: &HeaderMap, position: u64) -> Option<Response> {
    let known = headers.get(header::IF_NONE_MATCH)?.to_str().ok()?;
    let current = etag(position);
    let same =
        known.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == current);
    same.then(|| with_etag(StatusCode::NOT_MODIFIED.into_response(), position))
}

/// What `answer` makes, or 304 where the caller has the state at `position` already.
fn unless_known(
    headers: &HeaderMap,
    position: u64,
    answer: impl FnOnce() -> ApiResult<Response>,
) -> ApiResult<Response> {
    unchanged(headers, position).map_or_else(answer, Ok)
}

fn tagged(position: u64, body: &impl Serialize) -> Response {
    with_etag(Json(body).into_response(), position)
}

fn with_etag(mut response: Response, position: u64) -> Response {
    // quotes and digits are a valid header value
    if let Ok(value) = HeaderValue::from_str(&etag(position)) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}
