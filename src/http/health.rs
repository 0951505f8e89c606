//! Is it alive, is it ready, and how is it doing: for orchestrators and Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{ApiResult, Problem, ProblemDocument, ProblemKind};
use super::{AppState, Caller, openapi};
use crate::telemetry::metrics;

/// The database is asked at most this often, however many probe: `/readyz` needs no key, and must
/// not be a way to keep the database busy.
const CHECK_AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// A database that takes longer than this to answer a trivial question is not fit to serve from.
const CHECK_WITHIN: Duration = Duration::from_secs(2);

/// Whether the server should be sent requests.
#[derive(Debug)]
pub struct Readiness {
    started: Instant,
    draining: AtomicBool,
    database: Mutex<Option<DatabaseCheck>>,
}

#[derive(Debug, Clone, Copy)]
struct DatabaseCheck {
    at: Instant,
    took: Duration,
    ok: bool,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            draining: AtomicBool::new(false),
            database: Mutex::new(None),
        }
    }
}

impl Readiness {
    /// Say from now on that the server is going away.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Ask the database, unless that was done a moment ago. Those who ask at once share one
    /// question.
    async fn database(&self, state: &AppState) -> DatabaseCheck {
        let mut newest = self.database.lock().await;
        if let Some(check) = newest.filter(|check| check.at.elapsed() < CHECK_AT_MOST_EVERY) {
            return check;
        }
        let started = Instant::now();
        let ok = match tokio::time::timeout(CHECK_WITHIN, state.service.check()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "not ready: the database check failed");
                false
            }
            Err(_) => {
                tracing::warn!(
                    seconds = CHECK_WITHIN.as_secs(),
                    "not ready: the database check took too long"
                );
                false
            }
        };
        *newest.insert(DatabaseCheck { at: Instant::now(), took: started.elapsed(), ok })
    }
}

/// A server that can be sent requests.
#[derive(Debug, Serialize, ToSchema)]
struct Ready {
    /// Always `ready`; a server that is not answers 503.
    #[schema(example = "ready")]
    status: &'static str,
    /// Version of the program.
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Seconds since it started.
    #[schema(example = 86400.0)]
    uptime_seconds: f64,
    /// What was checked.
    checks: Checks,
}

/// What readiness depends on.
#[derive(Debug, Serialize, ToSchema)]
struct Checks {
    /// The database answers and has the schema of this program.
    database: Check,
}

/// One check that passed.
#[derive(Debug, Serialize, ToSchema)]
struct Check {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// Seconds since it was checked; the database is asked once a second at most.
    #[schema(example = 0.2)]
    age_seconds: f64,
    /// Seconds that the check took.
    #[schema(example = 0.0004)]
    duration_seconds: f64,
}

/// Whether the process lives
///
/// For a liveness probe: it says nothing about the database, because restarting the server would
/// not mend that.
#[utoipa::path(get, path = "/livez", tag = openapi::OPERATIONS, responses(
    (status = 200, description = "It lives", body = String, content_type = "text/plain", example = "ok\n")
))]
async fn livez() -> &'static str {
    "ok\n"
}

/// Whether the server should be sent requests
///
/// Not while its database does not answer or has another schema, nor while it is shutting down.
#[utoipa::path(
    get, path = "/readyz", tag = openapi::OPERATIONS,
    responses(
        (status = 200, description = "It is ready", body = Ready),
        (status = 503, description = "`unavailable`", body = ProblemDocument, content_type = "application/problem+json")
    )
)]
async fn readyz(State(state): State<AppState>) -> ApiResult<Json<Ready>> {
    let readiness = Arc::clone(&state.readiness);
    if readiness.draining.load(Ordering::SeqCst) {
        return Err(Problem::new(
            ProblemKind::Unavailable,
            "Not ready: the server is shutting down.",
        ));
    }
    let database = readiness.database(&state).await;
    if !database.ok {
        return Err(Problem::new(
            ProblemKind::Unavailable,
            "Not ready: the database does not answer, or has another schema than this program's. The log says which.",
        ));
    }
    Ok(Json(Ready {
        status: "ready",
        version: env!("CARGO_PKG_VERSION"),
        uptime_seconds: readiness.started.elapsed().as_secs_f64(),
        checks: Checks {
            database: Check {
                status: "ok",
                age_seconds: database.at.elapsed().as_secs_f64(),
                duration_seconds: database.took.as_secs_f64(),
            },
        },
    }))
}

/// What the server counts and measures, for Prometheus
///
/// For a key that is for all experiments: the metrics tell of every one.
#[utoipa::path(get, path = "/metrics", tag = openapi::OPERATIONS, security(("key" = ["read"])), responses(
    (status = 200, description = "All metrics, in the OpenMetrics text format", body = String,
     content_type = "application/openmetrics-text")
))]
async fn metrics(State(state): State<AppState>, caller: Caller) -> ApiResult<impl IntoResponse> {
    caller.require_all_experiments()?;
    let text = state.metrics.encode().map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}

/// The routes of this file.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    openapi::part().routes(routes!(livez)).routes(routes!(readyz)).routes(routes!(metrics))
}
