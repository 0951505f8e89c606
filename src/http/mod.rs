//! The API: how the use cases of [`crate::experiment`] look over HTTP.
//!
//! One file a resource. Around them lies the shell, the same for all: [`middleware`] (request ids,
//! logs, limits, problems), [`auth`], and [`openapi`] (the description that is served and
//! rendered).

use std::sync::Arc;

use axum::Router;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::access::ApiKeySet;
use crate::service::Service;
use crate::telemetry::metrics::Metrics;

pub mod audit;
pub mod auth;
pub mod batch;
mod click;
mod docs;
pub mod duels;
mod experiment_metrics;
pub mod experiments;
pub mod extract;
pub mod feedback;
pub mod front;
pub mod health;
mod methods;
pub mod middleware;
mod openapi;
pub mod pages;
pub mod problem;
mod refusals;
pub(crate) mod schemas;
pub mod server;
pub mod standings;
pub mod statistics;
pub mod trace;
pub mod traffic;
pub mod ubi;
pub mod verdict;
pub mod whatif;

use crate::dashboard::{self, Sessions};
pub use auth::Caller;
use auth::{Guard, Rules};
use duels::InMemoryDuels;
use experiment_metrics::ExperimentMetrics;
pub use extract::{JsonBody, PathOf, QueryOf};
use front::{App, FastPath};
use middleware::Shell;
pub use middleware::ShellSettings;
pub use problem::{ApiResult, Problem, ProblemKind};

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The use cases.
    pub service: Arc<Service>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Whether the server should be sent requests.
    pub readiness: Arc<health::Readiness>,
}

/// The resources of the API, each with its paths below `/v1`. A new resource is added here.
fn resources() -> OpenApiRouter<AppState> {
    openapi::part()
        .merge(experiments::routes())
        .merge(duels::routes())
        .merge(pages::routes())
        .merge(feedback::routes())
        .merge(ubi::routes())
        .merge(standings::routes())
        .merge(statistics::routes())
        .merge(verdict::routes())
        .merge(whatif::routes())
        .merge(batch::routes())
        .merge(audit::routes())
        .merge(traffic::routes())
}

fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(openapi::ApiDoc::openapi())
        .nest("/v1", resources())
        .merge(health::routes())
}

/// Every route and the description of them all, without the shell around them.
pub fn router(state: AppState) -> (Router, OpenApi) {
    let (router, mut openapi) = routes().split_for_parts();
    openapi::complete(&mut openapi);
    (router.with_state(state), openapi)
}

/// The description of the API.
pub fn description() -> OpenApi {
    let mut openapi = routes().into_openapi();
    openapi::complete(&mut openapi);
    openapi
}

/// What a server serves: every route, its documentation, and the shell around them.
pub fn app(state: AppState, settings: &ShellSettings) -> anyhow::Result<App> {
    let metrics = Arc::clone(&state.metrics);
    metrics.register(Box::new(ExperimentMetrics::new(Arc::downgrade(&state.service))));
    let at_once = InMemoryDuels::new(Arc::clone(&state.service));
    let given = Arc::new(ApiKeySet::of_given(&settings.keys));
    let sessions = Sessions::new(Arc::clone(&given), Arc::clone(&state.service));
    let pages = dashboard::routes(state.clone(), sessions.clone());
    let service = Arc::clone(&state.service);
    let (router, openapi) = router(state);
    let guard = Guard::new(given, Some((service, sessions)), Rules::of(&openapi));
    let router = router.merge(docs::routes(&openapi)?).merge(pages);
    let shell = Arc::new(Shell::new(guard, settings, &metrics)?);
    let router = middleware::wrap_in(&shell, router, settings);
    Ok(App::new(router, FastPath::new(shell, at_once)))
}
