//! `GET /v1/experiments/{name}`: read an experiment.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::representation::Experiment;
use crate::http::extract::PathOf;
use crate::http::problem::ApiResult;
use crate::http::state::AppState;

/// Read an experiment
#[utoipa::path(get, path = "/v1/experiments/{name}", tag = "experiments",
    params(("name" = String, Path, description = "Name of the experiment.")),
    responses(
        (status = 200, body = Experiment, description = "The experiment.", headers(("etag" = String))),
    ))]
pub(crate) async fn read(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    Ok(Experiment::of(&loaded)?.into_response(StatusCode::OK, &[]))
}
