//! Assembly of the server: every route, the shell around them, and the fast path.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::Context as _;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use axum::routing::future::RouteFuture;
use axum::{BoxError, Router};
use futures_util::future::Either;
use tower::Service as _;
use tower_http::csrf::{CsrfLayer, ProtectionError};
use utoipa::OpenApi as _;
use utoipa::openapi::{OpenApi, Server};

use super::caller::forbidden;
use super::experiment_metrics::ExperimentMetrics;
use super::openapi::{self, ApiDoc};
use super::operations::{Operation, Routes};
use super::server::connections::Peer;
use super::server::fast_path::FastPath;
use super::server::guard::{Guard, Rule, Rules};
use super::server::keys::Keys;
use super::server::sessions::Sessions;
use super::server::shell::{Shell, ShellSettings};
use super::state::AppState;
use super::{
    audit, batch, docs, duels, experiments, feedback, health, pages, plan, reports, traffic, ubi,
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
pub struct App {
    router: Router,
    fast_path: Arc<FastPath>,
    metrics: Arc<Metrics>,
}

/// The server for this state.
pub fn app(state: AppState, settings: &ShellSettings) -> anyhow::Result<App> {
    app_with(state, settings, Router::new())
}

/// The server for this state, with more routes. They are not part of the API: with keys, they need
/// the scope `admin`.
pub fn app_with(state: AppState, settings: &ShellSettings, more: Router) -> anyhow::Result<App> {
    let (service, metrics) = (Arc::clone(&state.service), Arc::clone(&state.metrics));
    metrics.register(Box::new(ExperimentMetrics::new(Arc::downgrade(&service))));
    state.readiness.watch_database(&service, &metrics);
    let (router, operations, mut openapi) = parts();
    let keys = Keys::new(ApiKeySet::of_given(&settings.keys), Arc::clone(&service));
    let sessions = Sessions::new(keys, settings.path_prefix.clone());
    let rules = Rules::of_operations(&operations)
        .with(&docs::OPEN, &Rule::Open)
        .with(&dashboard::FILES, &Rule::Open)
        .with(&dashboard::OPEN_PAGES, &Rule::OpenPage)
        .with(&dashboard::PAGES, &Rule::Page)
        .with(&dashboard::MANAGING_PAGES, &Rule::ManagingPage);
    // Only pages of this site may send requests that change anything.
    let other_site = |_: ProtectionError| {
        let detail = "This server accepts no requests to its API from pages of other sites. Send \
                      them from a server.";
        forbidden(detail.into()).into_response()
    };
    if !settings.path_prefix.as_str().is_empty() {
        openapi.servers = Some(vec![Server::new(settings.path_prefix.as_str())]);
    }
    let router = router
        .with_state(state.clone())
        .layer(CsrfLayer::new().with_rejection_response(other_site))
        .merge(docs::routes(&openapi)?)
        .merge(dashboard::routes(state, sessions.clone()))
        .merge(more);
    let guard = Guard::new(sessions, rules, settings.hosts, dashboard::page_of);
    let shell = Shell::new(guard, &service, settings, &metrics)
        .context("the operating system provides no randomness")?;
    let shell = Arc::new(shell);
    let router = shell.around(router);
    let fast_path = Arc::new(FastPath::new(shell, service));
    Ok(App { router, fast_path, metrics })
}

/// The future of a response: [`Either::Left`] if the fast path responded.
pub type ResponseFuture = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

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
        mut request: hyper::Request<B>,
        peer: Option<&Arc<Peer>>,
    ) -> ResponseFuture
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.fast_path.shell.settings.path_prefix.strip(&mut request);
        let mut request = if request.body().is_end_stream() {
            match self.fast_path.respond(request.map(|_| Body::empty()), peer.map(Arc::as_ref)) {
                ControlFlow::Break(response) => return Either::Left(ready(Ok(response))),
                ControlFlow::Continue(request) => request,
            }
        } else {
            request.map(Body::new)
        };
        if let Some(peer) = peer {
            request.extensions_mut().insert(Arc::clone(peer));
        }
        Either::Right(self.router.clone().call(request))
    }

    /// Whether a request with this key would be authenticated.
    pub(crate) fn is_valid(&self, key: &KnownKey) -> bool {
        self.fast_path.shell.guard.is_valid(key)
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
