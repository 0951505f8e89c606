//! The shell around every route: the behaviour that all requests share.
//!
//! From the outside in: [`observe`] (id, trace, log line, metrics, problems), authorization
//! ([`super::guard`]), a permit to run ([`Shell::admit`]), then panics, the time limit, the body
//! limit and compression. The order matters. A refused request is logged and described like any
//! other, and a caller without a key takes no permit.
//!
//! Requests that memory can answer do not take this path: see [`super::fast_path`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate as _, SizeAbove};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;
use tracing::Instrument as _;

use super::caller::Caller;
use super::guard::{Authorization, Guard, unknown_key};
use super::problem::{Problem, ProblemKind};
use super::request_id::{NoRandomness, RequestIds};
use super::running_request::{Route, RunningRequest, is_probe, with_key};
use crate::access::ApiKeys;
use crate::telemetry::metrics::Metrics;

/// Limit of the size of a request's headers, names and values together. A request beyond it gets
/// 431.
const HEADERS_MAX_BYTES: usize = 16 * 1024;

/// Responses below this size are not compressed: they fit into a few packets, and compressing takes
/// longer than sending. Responses of the hot path are always smaller.
const COMPRESS_ABOVE_BYTES: u64 = 4 * 1024;

/// Settings of the shell.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// Keys with every scope, in addition to those in the database. If there are no keys at all,
    /// every request is admitted.
    pub keys: ApiKeys,
    /// A request that takes longer is cancelled and gets 504.
    pub request_timeout: Duration,
    /// A request with a larger body gets 413.
    pub body_limit_bytes: usize,
    /// Maximum number of requests that run at once; any further one gets 503.
    pub max_concurrent_requests: usize,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            keys: ApiKeys::default(),
            request_timeout: Duration::from_secs(10),
            body_limit_bytes: 2 * 1024 * 1024,
            max_concurrent_requests: 1024,
        }
    }
}

/// What all requests of a server share.
pub(crate) struct Shell {
    pub metrics: Arc<Metrics>,
    pub guard: Guard,
    /// One for each request that may run.
    pub permits: Semaphore,
    ids: RequestIds,
}

impl Shell {
    pub fn new(
        guard: Guard,
        settings: &ShellSettings,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, NoRandomness> {
        Ok(Self {
            metrics: Arc::clone(metrics),
            ids: RequestIds::new()?,
            guard,
            permits: Semaphore::new(settings.max_concurrent_requests.min(Semaphore::MAX_PERMITS)),
        })
    }

    /// Put this shell around `router`.
    pub fn around(self: &Arc<Self>, router: Router, settings: &ShellSettings) -> Router {
        let panics = self.metrics.panics.clone();
        let compress = DefaultPredicate::new().and(SizeAbove::new(COMPRESS_ABOVE_BYTES));
        let layers = ServiceBuilder::new()
            .layer(from_fn_with_state(Arc::clone(self), observe))
            .layer(CatchPanicLayer::custom(move |_| panic_response(&panics)))
            .layer(TimeoutLayer::with_status_code(
                StatusCode::GATEWAY_TIMEOUT,
                settings.request_timeout,
            ))
            .layer(RequestBodyLimitLayer::new(settings.body_limit_bytes))
            .layer(CompressionLayer::new().compress_when(compress));
        // `RequestBodyLimitLayer` replaces the fixed limit of the framework.
        router.layer(DefaultBodyLimit::disable()).layer(layers)
    }

    pub fn begin(&self, request: &Request, route: Route, started: Instant) -> RunningRequest {
        let id = self.ids.of(request.headers());
        RunningRequest::begin(&self.metrics, id, request, route, started)
    }

    /// Run an authorized request if there is a permit. Refusing a request at once, instead of
    /// queueing it, keeps the running ones fast.
    async fn admit(&self, mut request: Request, next: Next, request_id: &str) -> Response {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map(MatchedPath::as_str);
        let mut authorization = self.guard.authorize(&request, route);
        if let Ok(Authorization::UnknownKey) = authorization {
            authorization = match self.guard.refresh().await {
                Ok(()) => self.guard.authorize(&request, route),
                Err(problem) => Err(Box::new(problem.into_response())),
            };
        }
        let caller = match authorization {
            Ok(Authorization::Admitted(key)) => key,
            Ok(Authorization::UnknownKey) => return unknown_key().into_response(),
            Err(refusal) => return *refusal,
        };
        let key = caller.as_ref().map(|key| key.id().clone());
        let _permit = if is_probe(request.uri().path()) {
            None
        } else {
            match self.permits.try_acquire() {
                Ok(permit) => Some(permit),
                Err(_) => {
                    self.metrics.http_requests_shed.inc();
                    return with_key(key, overloaded().into_response());
                }
            }
        };
        request.extensions_mut().insert(Caller::new(caller, request_id));
        let response = next.run(request).await;
        with_key(key, response)
    }
}

fn overloaded() -> Problem {
    Problem::new(
        ProblemKind::Overloaded,
        "The server is running its maximum number of requests; it did not process this one.",
    )
}

/// The response to a request whose handler panicked.
pub(crate) fn panic_response(panics: &Counter) -> Response {
    // The panic hook has logged the message and the place.
    panics.inc();
    Problem::unexpected().into_response()
}

/// The outermost layer: identifies, logs and counts the request, and describes problems.
async fn observe(State(shell): State<Arc<Shell>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let running = shell.begin(&request, Route::Matched(route), Instant::now());
    let uri = request.uri().clone();
    let headers_bytes = headers_bytes(request.headers());
    let response = if headers_bytes > HEADERS_MAX_BYTES {
        Problem::new(
            ProblemKind::HeaderFieldsTooLarge,
            format!(
                "The headers are {headers_bytes} bytes; this server accepts {HEADERS_MAX_BYTES}."
            ),
        )
        .into_response()
    } else {
        let response = shell.admit(request, next, running.id()).instrument(running.span());
        running.trace().within(response).await
    };
    running.end(response, uri.path())
}

fn headers_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.as_bytes().len()).sum()
}

/// Whether a request's headers are within the limit.
pub(crate) fn headers_fit(headers: &HeaderMap) -> bool {
    headers_bytes(headers) <= HEADERS_MAX_BYTES
}
