//! The API: how the use cases of [`crate::experiment`] look over HTTP.
//!
//! One file a resource. Around them lies the shell, the same for all: [`middleware`] (request ids, logs, limits,
//! problems), [`auth`], and [`openapi`] (the description that is served and rendered).

use std::sync::Arc;

use axum::Router;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::experiment::Service;
use crate::telemetry::metrics::Metrics;

pub mod auth;
pub mod batch;
pub mod duels;
pub mod experiments;
pub mod extract;
pub mod feedback;
mod openapi;
pub mod problem;
mod refusals;
pub mod standings;

pub use extract::{JsonBody, PathOf, QueryOf};
pub use problem::{ApiResult, Problem, ProblemKind};

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The use cases.
    pub service: Arc<Service>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// The resources of the API, each with its paths below `/v1`. A new resource is added here.
fn resources() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(OpenApi::default())
        .merge(experiments::routes())
        .merge(duels::routes())
        .merge(feedback::routes())
        .merge(standings::routes())
        .merge(batch::routes())
}

/// The whole API and its description.
pub fn router(state: AppState) -> (Router, OpenApi) {
    let (router, mut openapi) =
        OpenApiRouter::with_openapi(openapi::ApiDoc::openapi()).nest("/v1", resources()).split_for_parts();
    openapi::complete(&mut openapi);
    (router.with_state(state), openapi)
}
