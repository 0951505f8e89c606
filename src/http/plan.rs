//! `/v1/plan`: how long an experiment will take, before it is created.

use axum::Json;
use axum::extract::State;
use utoipa_axum::routes;

use super::extract::JsonBody;
use super::operations::Routes;
use super::problem::ApiResult;
use super::state::AppState;
use crate::service::reports::plan::{PlanReport, PlanRequest, planned};
use rankduel_engine::access::Scope;

pub(crate) fn routes() -> Routes {
    Routes::new().operation(routes!(plan), Some(Scope::Read), &[])
}

/// Plan an experiment
///
/// Simulates the default policy until its verdict. The best ranker beats the second best by
/// `difference`, and the plan says how long that takes with one close rival, with a ladder of
/// rivals and with equal ones; or with `others` that you know. The same request gets the same plan,
/// after a few seconds. Nothing is created.
#[utoipa::path(post, path = "/v1/plan", tag = "experiments", request_body = PlanRequest,
    responses(
        (status = 200, body = PlanReport, description = "The plan."),
    ))]
async fn plan(
    State(state): State<AppState>,
    JsonBody(request): JsonBody<PlanRequest>,
) -> ApiResult<Json<PlanReport>> {
    Ok(Json(planned(&state.service.reports, request).await?))
}
