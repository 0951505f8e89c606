//! `DELETE /v1/experiments/{name}`: archive an experiment.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::if_match::{Expected, expected_version};
use crate::http::caller::Caller;
use crate::http::extract::PathOf;
use crate::http::problem::ApiResult;
use crate::http::state::AppState;

/// Archive an experiment
///
/// Requires a concluded experiment. Idempotent. An archived experiment is no longer listed, issues
/// no duels and accepts no feedback. Its log is kept, and its name cannot be used again.
#[utoipa::path(delete, path = "/v1/experiments/{name}", tag = "experiments",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        ("if-match" = Option<String>, Header, description = "`ETag` of the experiment as it was read."),
    ),
    responses((status = 204, description = "Archived.")))]
pub(crate) async fn archive(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    caller: Caller,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let version = expected_version(&headers)?.and_then(Expected::version);
    state.service.archive(&name, version, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
