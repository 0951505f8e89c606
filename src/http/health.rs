//! `/livez`, `/readyz` and `/metrics`: for orchestrators and Prometheus.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::caller::Caller;
use super::experiment_metrics;
use super::openapi;
use super::operations::Routes;
use super::problem::{ApiResult, Problem, ProblemKind};
use super::state::{AppState, DatabaseState};
use rankduel_engine::access::Scope;
use rankduel_engine::metrics;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(livez), None, &[])
        .operation(routes!(readyz), None, &[ProblemKind::Unavailable])
        .operation(routes!(metrics), Some(Scope::Read), &[])
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
    #[schema(example = 86400.0)]
    uptime_seconds: f64,
    checks: Checks,
}

/// The checks of the server.
#[derive(Debug, Serialize, ToSchema)]
struct Checks {
    /// The last check of the database. While the server has experiments in memory, it is ready
    /// without the database.
    database: Check,
}

/// The result of the last check.
#[derive(Debug, Serialize, ToSchema)]
struct Check {
    status: DatabaseState,
    /// Seconds since the check; the database is checked once a second.
    #[schema(example = 0.2)]
    age_seconds: f64,
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
/// Whether the server can issue duels, for load balancers. While the database does not answer, the
/// server can issue them from memory. The server is not ready while it is shutting down, if the
/// database has the schema of another version or its file moved, or if the database does not answer
/// and no experiment is in memory.
#[utoipa::path(get, path = "/readyz", tag = openapi::OPERATIONS_TAG, responses(
    (status = 200, description = "The server is ready.", body = Ready),
))]
async fn readyz(State(state): State<AppState>) -> ApiResult<Json<Ready>> {
    let readiness = &state.readiness;
    let database = readiness.database();
    let not_ready =
        |why: &str| Err(Problem::new(ProblemKind::Unavailable, format!("Not ready: {why}.")));
    if readiness.is_draining() {
        return not_ready("the server is shutting down");
    }
    if database.state == DatabaseState::Unusable {
        return not_ready(
            "the server cannot serve from its database; the cause is in the server's log output",
        );
    }
    if database.state == DatabaseState::Unavailable && state.service.loaded().is_empty() {
        return not_ready("the database does not answer, and no experiment is in memory");
    }
    Ok(Json(Ready {
        status: "ready",
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: readiness.uptime().as_secs_f64(),
        checks: Checks {
            database: Check {
                status: database.state,
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
    (status = 200, description = "All metrics, in the text format of Prometheus, or as OpenMetrics if \
                                  `Accept` has it.",
     content((String = "application/openmetrics-text"), (String = "text/plain")))
))]
async fn metrics(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
) -> ApiResult<impl IntoResponse> {
    caller.require_all_experiments()?;
    experiment_metrics::prepare(&state.service).await;
    let _turn = state.service.scrape.lock().await;
    let metrics = Arc::clone(&state.metrics);
    let text = tokio::task::spawn_blocking(move || metrics.encode());
    let text = text.await.map_err(Problem::internal)?.map_err(Problem::internal)?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
    // Prometheus asks for OpenMetrics; people and most tools mean the text format
    Ok(match accept.contains("openmetrics") {
        true => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text),
        false => {
            let plain = metrics::as_plain(&text);
            ([(header::CONTENT_TYPE, metrics::PLAIN_CONTENT_TYPE)], plain)
        }
    })
}
