//! What a server serves, and what of it is answered before the router is asked: a request that
//! needs nothing but memory takes none of the layers, whose boxes and clones cost more than its
//! answer.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use axum::{BoxError, Router};
use futures_util::future::Either;
use hyper::body::Incoming;
use hyper::service::Service;
use tower::Service as _;

use super::auth::Authorization;
use super::duels::InMemoryDuels;
use super::middleware::{Route, RouteMetrics, Shell, headers_fit, named, panicked};

/// The routes of a server, and the way before them.
#[derive(Clone)]
pub struct App {
    router: Router,
    front: Option<Arc<FastPath>>,
}

impl App {
    pub(crate) fn new(router: Router, front: FastPath) -> Self {
        Self { router, front: Some(Arc::new(front)) }
    }
}

/// Routes with nothing before them.
impl From<Router> for App {
    fn from(router: Router) -> Self {
        Self { router, front: None }
    }
}

/// An answer of an [`App`].
pub type Answering = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

impl App {
    /// Answer a request.
    pub fn answer<B>(&self, request: hyper::Request<B>) -> Answering
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let front = self.front.as_ref().filter(|_| request.body().is_end_stream());
        let routed = match front {
            None => request.map(Body::new),
            Some(front) => match front.answer(request.map(|_| Body::empty())) {
                ControlFlow::Break(response) => return Either::Left(ready(Ok(response))),
                ControlFlow::Continue(unanswered) => unanswered,
            },
        };
        Either::Right(self.router.clone().call(routed))
    }
}

impl Service<hyper::Request<Incoming>> for App {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        self.answer(request)
    }
}

/// Answers `next-duel` from memory, as the [`Shell`] would have it answered.
pub(crate) struct FastPath {
    shell: Arc<Shell>,
    duels: InMemoryDuels,
    metrics: Arc<RouteMetrics>,
}

impl FastPath {
    /// In front of what is in this shell.
    pub fn new(shell: Arc<Shell>, duels: InMemoryDuels) -> Self {
        let metrics = Arc::new(RouteMetrics::new(&shell.metrics, "POST", InMemoryDuels::ROUTE));
        Self { shell, duels, metrics }
    }

    /// The answer, or the request when it has to go to the router: for what is not in memory, and
    /// for every refusal.
    fn answer(&self, request: Request) -> ControlFlow<Response, Request> {
        let started = Instant::now();
        let shell = &*self.shell;
        let Some(name) = self.duels.experiment(&request).filter(|_| headers_fit(request.headers()))
        else {
            return ControlFlow::Continue(request);
        };
        let Ok(Authorization::Admitted(key)) =
            shell.guard.judge(&request, Some(InMemoryDuels::ROUTE))
        else {
            return ControlFlow::Continue(request);
        };
        // after the key: a caller without one keeps nothing in memory
        let Some(loaded) = self.duels.in_memory(name) else {
            return ControlFlow::Continue(request);
        };
        let Ok(_place) = shell.places.try_acquire() else { return ControlFlow::Continue(request) };
        let running = shell.begin(
            &request,
            Route::Known(InMemoryDuels::ROUTE, Arc::clone(&self.metrics)),
            started,
        );
        let answer = || {
            catch_unwind(AssertUnwindSafe(|| self.duels.answer(&loaded)))
                .unwrap_or_else(|_| panicked(&shell.metrics.panics))
        };
        let response = running.span().in_scope(|| Arc::clone(&running.told).within_now(answer));
        let response = named(key.map(|key| key.id().clone()), response);
        ControlFlow::Break(running.end(response, request.uri().path()))
    }
}
