//! The shell around every route: the behaviour that all requests share.
//!
//! From the outside in: [`observe`] (id, trace, log line, metrics, problems), authorization
//! ([`super::guard`]), the time limit, the whole body ([`super::request_body`]), a permit to run
//! ([`Shell::run`]), then panics. After the handler come the path of a proxy
//! ([`super::path_prefix`]) and compression ([`super::deliver`]), and last the turn of the response
//! ([`super::pace`]). The order matters: a refused request is logged and described like any other,
//! and neither a caller without a key nor a body that has not arrived yet takes a permit.
//!
//! Requests that memory can answer do not take this path, but the fast one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use prometheus_client::metrics::counter::Counter;
use rand::rngs::SysError;
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

use super::connections::Peer;
use super::deliver::{accepts_gzip, deliver};
use super::guard::{Authorization, Guard, unknown_key};
use super::hosts::Hosts;
use super::pace::Pace;
use super::path_prefix::PathPrefix;
use super::request_body::{BodyBudget, Share};
use super::running_request::{RequestIds, Route, RunningRequest, is_probe, with_key};
use super::versions::OldClients;
use crate::http::caller::Caller;
use crate::http::extract::{LargeBody, READ_NANOSECONDS};
use crate::http::problem::{Problem, ProblemKind, take_problem};
use crate::service::Service;
use crate::service::reports::pool::ReportPool;
use crate::service::threads::{WorkThreads, is_long, owned_by};
use rankduel_engine::access::{ApiKeys, KnownKey, RunningOfKey};
use rankduel_engine::metrics::Metrics;

/// Limit of the size of a request's headers, names and values together. A request beyond it gets
/// 431.
const HEADERS_MAX_BYTES: usize = 16 * 1024;

/// Largest body of a request without a key: that of a login.
const OPEN_BODY_MAX_BYTES: usize = 4 * 1024;

/// Settings of the shell.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// Keys with every scope, in addition to those in the database. If there are no keys at all,
    /// every request is admitted.
    pub keys: ApiKeys,
    /// A request that takes longer is cancelled and gets 504.
    pub request_timeout: Duration,
    /// The same for a request without a key, with its body and its wait.
    pub open_timeout: Duration,
    /// A request with a larger body gets 413; without a key from 4 KiB on.
    pub body_limit_bytes: usize,
    /// Maximum number of requests with a key that run at once; any further one gets 503.
    pub max_concurrent_requests: usize,
    /// Memory of the bodies of all requests, without the first 16 KiB of each.
    pub bodies_bytes: usize,
    /// The path under which a proxy shows the server.
    pub path_prefix: PathPrefix,
    /// The hosts that requests may name while there are no keys.
    pub hosts: Hosts,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            keys: ApiKeys::default(),
            request_timeout: Duration::from_secs(10),
            open_timeout: Duration::from_secs(2),
            body_limit_bytes: 2 * 1024 * 1024,
            max_concurrent_requests: 1024,
            bodies_bytes: 64 * 1024 * 1024,
            path_prefix: PathPrefix::default(),
            hosts: Hosts::Any,
        }
    }
}

/// State that all requests of a server share.
pub(crate) struct Shell {
    pub metrics: Arc<Metrics>,
    pub guard: Guard,
    pub settings: ShellSettings,
    /// One for each request that may run.
    permits: Semaphore,
    ids: RequestIds,
    old_clients: OldClients,
    /// The turns of responses to reads.
    reads: Pace,
    /// The turns of responses to callers without a key.
    open: Pace,
    reports: Arc<ReportPool>,
    large_bodies: Arc<WorkThreads>,
    bodies: BodyBudget,
}

impl Shell {
    pub fn new(
        guard: Guard,
        service: &Service,
        settings: &ShellSettings,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, SysError> {
        Ok(Self {
            metrics: Arc::clone(metrics),
            ids: RequestIds::new()?,
            old_clients: OldClients::default(),
            guard,
            reads: Pace::of_this_machine(),
            open: Pace::of_this_machine(),
            reports: Arc::clone(&service.reports),
            large_bodies: Arc::clone(&service.bodies),
            permits: Semaphore::new(settings.max_concurrent_requests.min(Semaphore::MAX_PERMITS)),
            bodies: BodyBudget::new(settings.bodies_bytes),
            settings: settings.clone(),
        })
    }

    /// Put this shell around `router`.
    pub fn around(self: &Arc<Self>, router: Router) -> Router {
        let panics = self.metrics.panics.clone();
        let layers = ServiceBuilder::new()
            .layer(from_fn_with_state(Arc::clone(self), observe))
            .layer(CatchPanicLayer::custom(move |_| panic_response(&panics)));
        // The shell reads bodies, within its own limit.
        router.layer(DefaultBodyLimit::disable()).layer(layers)
    }

    pub fn begin(&self, request: &Request, route: Route, started: Instant) -> RunningRequest {
        self.old_clients.note(request.headers());
        let id = self.ids.of(request.headers());
        RunningRequest::begin(&self.metrics, id, request, route, started)
    }

    /// Run a request if it is authorized.
    async fn admit(&self, request: Request, next: Next, request_id: &str) -> Response {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map(MatchedPath::as_str);
        let authorization = match self.guard.authorize(&request, route) {
            Ok(Authorization::UnknownKey) => match self.read_keys().await {
                Ok(()) => self.guard.authorize(&request, route),
                Err(problem) => Err(Box::new(problem.into_response())),
            },
            decided => decided,
        };
        let key = match authorization {
            Ok(Authorization::Admitted(key)) => key,
            Ok(Authorization::Open) => return self.run_open(request, next).await,
            Ok(Authorization::UnknownKey) => return unknown_key().into_response(),
            Err(refusal) => return self.settings.path_prefix.put_before(*refusal).await,
        };
        if let Some(peer) = request.extensions().get::<Arc<Peer>>() {
            peer.note_authorized(key.as_ref(), Instant::now());
        }
        let id = key.as_ref().map(|key| key.id().clone());
        let run = self.run(request, next, Caller::new(key, request_id));
        with_key(id.clone(), owned_by(id, run).await)
    }

    /// Read the keys of the database because a request has one that this process does not know.
    /// The request holds only its connection meanwhile, and waits no longer than any request
    /// without a key.
    async fn read_keys(&self) -> Result<(), Problem> {
        let read = async {
            self.open.turn().await;
            self.guard.refresh().await
        };
        tokio::time::timeout(self.settings.open_timeout, read).await.unwrap_or_else(|_| {
            Err(Problem::new(
                ProblemKind::Unavailable,
                "This server does not know the key, and the database does not answer in time.",
            ))
        })
    }

    /// Run a request that needs no key. It takes no permit; probes do not wait for a turn either.
    async fn run_open(&self, request: Request, next: Next) -> Response {
        let is_probe = is_probe(request.uri().path());
        let run = async {
            let (request, _share) = self.with_whole_body(request, OPEN_BODY_MAX_BYTES).await?;
            let response = self.respond(request, next).await;
            if !is_probe {
                self.open.turn().await;
            }
            Ok(response)
        };
        // A probe of the database has a time limit of its own.
        within(
            if is_probe { self.settings.request_timeout } else { self.settings.open_timeout },
            run,
        )
        .await
    }

    /// Run an authorized request if there is a permit. Refusing a request at once, instead of
    /// queueing it, keeps the running ones fast.
    async fn run(&self, request: Request, next: Next, caller: Caller) -> Response {
        let run = async {
            let (mut request, _share) =
                self.with_whole_body(request, self.settings.body_limit_bytes).await?;
            let is_probe = is_probe(request.uri().path());
            let permit = match is_probe {
                true => None,
                false => Some(self.permit(caller.key()).ok_or_else(|| {
                    self.metrics.http_requests_shed.inc();
                    overloaded()
                })?),
            };
            request.extensions_mut().insert(caller);
            if is_probe {
                // metrics are not compressed: that would wait for the threads for reports
                return Ok(next.run(request).await);
            }
            let reads = matches!(*request.method(), Method::GET | Method::HEAD);
            let response = self.respond(request, next).await;
            drop(permit);
            if reads {
                self.reads.turn().await;
            }
            Ok(response)
        };
        within(self.settings.request_timeout, run).await
    }

    /// The response of the router, as the caller gets it.
    async fn respond(&self, mut request: Request, next: Next) -> Response {
        let compress = accepts_gzip(request.headers());
        self.settings.path_prefix.require_text(&mut request);
        let response = self.settings.path_prefix.put_before(next.run(request).await).await;
        deliver(response, compress, &self.reports).await
    }

    /// A permit to run, if there is one. No key holds the last eighth of the permits, so that one
    /// with thousands of requests at once leaves some to the others.
    pub fn permit(
        &self,
        key: Option<&Arc<KnownKey>>,
    ) -> Option<(SemaphorePermit<'_>, Option<RunningOfKey>)> {
        let most = self.settings.max_concurrent_requests;
        let most = most - most / 8;
        let of_key = match key {
            Some(key) => Some(key.begin_request(most)?),
            None => None,
        };
        Some((self.permits.try_acquire().ok()?, of_key))
    }

    async fn with_whole_body(
        &self,
        request: Request,
        limit: usize,
    ) -> Result<(Request, Share), Problem> {
        let (mut parts, body) = request.into_parts();
        let (body, share) = self.bodies.read(&parts.headers, body, limit).await?;
        if is_long(body.len() * READ_NANOSECONDS) {
            parts.extensions.insert(LargeBody(Arc::clone(&self.large_bodies)));
        }
        Ok((Request::from_parts(parts, Body::from(body)), share))
    }
}

/// The response, or the problem of a request that takes longer than `limit`.
async fn within(limit: Duration, run: impl Future<Output = Result<Response, Problem>>) -> Response {
    tokio::time::timeout(limit, run)
        .await
        .unwrap_or_else(|_| Err(Problem::new(ProblemKind::Timeout, ProblemKind::Timeout.meaning())))
        .into_response()
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
    let pages_of = shell.guard.pages_of(&request, route.as_ref().map(MatchedPath::as_str));
    let running = shell.begin(&request, Route::Matched(route), Instant::now());
    let (uri, method) = (request.uri().clone(), request.method().clone());
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
        running.duels().within(response).instrument(running.exported()).await
    };
    let response = match pages_of {
        None => response,
        Some(page_of) => match take_problem(response, &method, uri.path()) {
            (response, None) => response,
            (response, Some(problem)) => {
                let mut page = shell.settings.path_prefix.put_before(page_of(&problem)).await;
                page.headers_mut().extend(problem.headers().clone());
                page.extensions_mut().extend(response.extensions().clone());
                page
            }
        },
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
