//! `/v1/experiments`: create, list, read, change and archive experiments.

pub(crate) mod change;
pub(crate) mod create;
mod list;
mod representation;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use utoipa_axum::routes;

use self::representation::Experiment;
use super::caller::Caller;
use super::conditional::{Expected, expected_version};
use super::extract::PathName;
use super::operations::Routes;
use super::problem::ApiResult;
use super::problem::ProblemKind::{
    ExperimentArchived, ExperimentExists, LogPruned, NotConcluded, PreconditionFailed,
    PreconditionRequired, RankersFixed, SettingFixed,
};
use super::state::AppState;
use crate::service::lifecycle;
use rankduel_engine::access::Scope;

const ADMIN: Option<Scope> = Some(Scope::Admin);
const READ: Option<Scope> = Some(Scope::Read);

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(create::create), ADMIN, &[ExperimentExists, ExperimentArchived])
        .operation(routes!(list::list), READ, &[])
        .operation(routes!(read), READ, &[])
        .operation(
            routes!(change::change),
            ADMIN,
            &[
                ExperimentArchived,
                LogPruned,
                RankersFixed,
                SettingFixed,
                PreconditionFailed,
                PreconditionRequired,
            ],
        )
        .operation(routes!(archive), ADMIN, &[NotConcluded, PreconditionFailed])
}

/// Read an experiment
#[utoipa::path(get, path = "/v1/experiments/{name}", tag = "experiments",
    responses((status = 200, body = Experiment, description = "The experiment.", headers(("etag" = String)))))]
async fn read(State(state): State<AppState>, PathName(name): PathName) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    Ok(Experiment::of(&loaded).into_response(StatusCode::OK))
}

/// Archive an experiment
///
/// Requires a concluded experiment. Idempotent. An archived experiment is no longer listed, issues
/// no duels and accepts no feedback. Its log is kept, and its name cannot be used again.
#[utoipa::path(delete, path = "/v1/experiments/{name}", tag = "experiments",
    params(
        ("if-match" = Option<String>, Header, description = "`ETag` of the experiment as it was read."),
    ),
    responses((status = 204, description = "Archived.")))]
async fn archive(
    State(state): State<AppState>,
    PathName(name): PathName,
    caller: Caller,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let version = expected_version(&headers)?.and_then(Expected::version);
    lifecycle::archive(&state.service, &name, version, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
