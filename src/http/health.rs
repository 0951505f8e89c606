//! `/livez`, `/readyz` and `/metrics`: for orchestrators and Prometheus.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::caller::Caller;
use super::experiment_metrics;
use super::openapi;
use super::operations::{Access, Routes};
use super::problem::{ApiResult, Problem, ProblemKind};
use super::state::AppState;
use rankduel_engine::access::Scope;
use rankduel_engine::metrics;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(livez), Access::Open, &[])
        .operation(routes!(readyz), Access::Open, &[ProblemKind::Unavailable])
        .operation(routes!(metrics), Access::Scope(Scope::Read), &[])
}

/// A server that is ready for requests.
#[derive(Debug, Serialize, ToSchema)]
struct Ready {
    /// Always `ready`; a server that is not ready responds 503.
    #[schema(example = "ready")]
    status: &'static str,
    /// Version of the program.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Seconds since the start of the server.
    #[schema(example = 86400.0)]
    uptime_seconds: f64,
    /// The checks that readiness depends on.
    checks: Checks,
}

/// The checks that readiness depends on.
#[derive(Debug, Serialize, ToSchema)]
struct Checks {
    /// The database answers and has the schema of this program.
    database: Check,
}

/// A check that passed.
#[derive(Debug, Serialize, ToSchema)]
struct Check {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// Seconds since the check; the database is checked at most once a second.
    #[schema(example = 0.2)]
    age_seconds: f64,
    /// Duration of the check in seconds.
    #[schema(example = 0.0004)]
    duration_seconds: f64,
}

/// Liveness
///
/// For a liveness probe. It does not check the database, because restarting the server would not
/// repair the database.
#[utoipa::path(get, path = "/livez", tag = openapi::OPERATIONS_TAG, responses(
    (status = 200, description = "The process is alive.", body = String, content_type = "text/plain", example = "ok\n")
))]
async fn livez() -> &'static str {
    "ok\n"
}

/// Readiness
///
/// The server is not ready while its database does not answer or has a different schema, or while
/// the server is shutting down.
#[utoipa::path(get, path = "/readyz", tag = openapi::OPERATIONS_TAG, responses(
    (status = 200, description = "The server is ready.", body = Ready),
))]
async fn readyz(State(state): State<AppState>) -> ApiResult<Json<Ready>> {
    let readiness = &state.readiness;
    if readiness.is_draining() {
        return Err(Problem::new(
            ProblemKind::Unavailable,
            "Not ready: the server is shutting down.",
        ));
    }
    let database = readiness.check_database(&state.service).await;
    if !database.ok {
        return Err(Problem::new(
            ProblemKind::Unavailable,
            "Not ready: the database does not answer, or has a different schema. The log has the cause.",
        ));
    }
    Ok(Json(Ready {
        status: "ready",
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: readiness.uptime().as_secs_f64(),
        checks: Checks {
            database: Check {
                status: "ok",
                age_seconds: database.at.elapsed().as_secs_f64(),
                duration_seconds: database.took.as_secs_f64(),
            },
        },
    }))
}

/// Metrics for Prometheus
///
/// A key that is restricted to some experiments gets 403, because the metrics cover all
/// experiments.
#[utoipa::path(get, path = "/metrics", tag = openapi::OPERATIONS_TAG, responses(
    (status = 200, description = "All metrics, in the OpenMetrics text format.", body = String,
     content_type = "application/openmetrics-text")
))]
async fn metrics(State(state): State<AppState>, caller: Caller) -> ApiResult<impl IntoResponse> {
    caller.require_all_experiments()?;
    experiment_metrics::prepare(&state.service).await;
    let metrics = Arc::clone(&state.metrics);
    let text = state.service.reports.read(move || metrics.encode());
    let text = text.await?.map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}
