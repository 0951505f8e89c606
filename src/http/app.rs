//! Assembly of the server: every route, and the shell around them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Context as _;
use axum::body::Bytes;
use axum::response::Response;
use axum::routing::MethodRouter;
use axum::{BoxError, Router};
use utoipa::OpenApi as _;
use utoipa::openapi::{OpenApi, Server};

use super::experiment_metrics::ExperimentMetrics;
use super::openapi::{self, ApiDoc};
use super::operations::{Operation, Routes};
use super::server::connections::Peer;
use super::server::guard::Guard;
use super::server::keys::Keys;
use super::server::routes::{RouteTable, Rule};
use super::server::sessions::Sessions;
use super::server::shell::{Shell, ShellSettings};
use super::state::AppState;
use super::{
    audit, batch, docs, duels, experiments, feedback, health, orders, pages, plan, reports,
    traffic, ubi,
};
use crate::dashboard;
use rankduel_engine::access::{ApiKeySet, KnownKey};
use rankduel_engine::metrics::Metrics;

/// The resources of the API. Add a new resource here.
fn api() -> Routes {
    Routes::described_by(ApiDoc::openapi())
        .merge(experiments::routes())
        .merge(plan::routes())
        .merge(duels::routes())
        .merge(pages::routes())
        .merge(feedback::routes())
        .merge(orders::routes())
        .merge(ubi::routes())
        .merge(reports::routes())
        .merge(batch::routes())
        .merge(audit::routes())
        .merge(traffic::routes())
        .merge(health::routes())
}

/// The router, the table of the API's operations, and its description.
fn parts() -> (Router<AppState>, Vec<Operation>, OpenApi) {
    let Routes { router, operations } = api();
    let (router, mut openapi) = router.split_for_parts();
    let problems = operations.iter().map(|operation| &operation.problems[..]);
    openapi::add_shared_components(&mut openapi, problems);
    (router, operations, openapi)
}

/// The OpenAPI document of the API.
pub fn description() -> OpenApi {
    let (_, _, openapi) = parts();
    openapi
}

/// The table of the API's operations.
pub fn operations() -> Vec<Operation> {
    api().operations
}

/// A server without its connections: every route, and the shell around them.
#[derive(Clone)]
pub struct App(Arc<Shell>);

/// The server for this state.
pub fn app(state: AppState, settings: &ShellSettings) -> anyhow::Result<App> {
    app_with(state, settings, Vec::new())
}

/// The server for this state, with more routes. They are not part of the API: with keys, they need
/// the scope `admin`.
pub fn app_with(
    state: AppState,
    settings: &ShellSettings,
    more: Vec<(&str, MethodRouter)>,
) -> anyhow::Result<App> {
    let (service, metrics) = (Arc::clone(&state.service), Arc::clone(&state.metrics));
    metrics.register(Box::new(ExperimentMetrics::new(Arc::downgrade(&service))));
    state.readiness.watch_database(&service, &metrics);
    let (router, operations, mut openapi) = parts();
    let keys = Keys::new(ApiKeySet::of_given(&settings.keys), service);
    let sessions = Sessions::new(keys, settings.path_prefix.clone());
    let more_paths: Vec<_> = more.iter().map(|(path, _)| *path).collect();
    let routes = RouteTable::of_operations(&operations)?
        .with(&docs::OPEN, &Rule::Open)?
        .with(&dashboard::FILES, &Rule::Open)?
        .with(&dashboard::OPEN_PAGES, &Rule::OpenPage)?
        .with(&dashboard::PAGES, &Rule::Page)?
        .with(&dashboard::MANAGING_PAGES, &Rule::ManagingPage)?
        .with(&more_paths, &Rule::Admin)?;
    if !settings.path_prefix.as_str().is_empty() {
        openapi.servers = Some(vec![Server::new(settings.path_prefix.as_str())]);
    }
    let router = router
        .with_state(state.clone())
        .merge(docs::routes(&openapi)?)
        .merge(dashboard::routes(state.clone(), sessions.clone()));
    let router =
        more.into_iter().fold(router, |router, (path, handlers)| router.route(path, handlers));
    let guard = Guard::new(sessions, settings.hosts, dashboard::page_of);
    let shell = Shell::new(guard, state, settings, routes, router)
        .context("the operating system provides no randomness")?;
    Ok(App(Arc::new(shell)))
}

/// The future of a response.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl App {
    /// Respond to a request whose origin is unknown. No limit per address applies to it.
    pub fn respond<B>(&self, request: hyper::Request<B>) -> ResponseFuture
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.respond_to(request, None)
    }

    /// Respond to a request of this peer.
    pub(crate) fn respond_to<B>(
        &self,
        request: hyper::Request<B>,
        peer: Option<&Arc<Peer>>,
    ) -> ResponseFuture
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let (shell, peer) = (Arc::clone(&self.0), peer.cloned());
        Box::pin(async move { Ok(shell.respond(request, peer).await) })
    }

    /// Whether a request with this key would be authenticated.
    pub(crate) fn is_valid(&self, key: &KnownKey) -> bool {
        self.0.guard.is_valid(key)
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }
}
