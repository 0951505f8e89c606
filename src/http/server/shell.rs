//! The shell around every route: the behaviour that all requests share.
//!
//! It is one future ([`Shell::respond`]), which is allocated once. From the outside in: id, trace,
//! log line, metrics and problems; authorization ([`super::guard`]); the time limit; the whole body
//! ([`super::request_body`]); a permit to run; then the operation, whose panics are caught. After
//! it come the path of a proxy ([`super::path_prefix`]) and compression ([`super::deliver`]), and
//! last the turn of the response ([`super::pace`]). The order matters: a refused request is logged
//! and described like any other, and neither a caller without a key nor a body that has not arrived
//! yet takes a permit.
//!
//! The operations of every page are called from here ([`Direct`]). axum routes all others. What is
//! rarely needed is boxed, so that the future stays small.

use std::convert::Infallible;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Router};
use futures_util::FutureExt as _;
use rand::rngs::SysError;
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::{Layer as _, Service as _, service_fn};
use tower_http::csrf::{CsrfLayer, ProtectionError};
use tracing::Instrument as _;

use super::connections::Peer;
use super::deliver::{accepts_gzip, deliver, is_large};
use super::guard::{Authorization, Guard, unknown_key};
use super::hosts::Hosts;
use super::pace::Pace;
use super::path_prefix::PathPrefix;
use super::request_body::BodyBudget;
use super::routes::{Route, RouteTable, Rule};
use super::running_request::{RequestIds, RunningRequest, is_probe, with_key};
use super::versions::OldClients;
use crate::http::caller::{Caller, forbidden};
use crate::http::direct::Direct;
use crate::http::extract::{LargeBody, READ_NANOSECONDS, WholeBody};
use crate::http::problem::{Problem, ProblemKind, take_problem};
use crate::http::state::AppState;
use crate::service::reports::pool::ReportPool;
use crate::service::threads::{WorkThreads, is_long, owned_by};
use rankduel_engine::access::{ApiKeys, KnownKey, RunningOfKey};
use rankduel_engine::metrics::Metrics;

/// Limit of the size of a request's headers, names and values together. A request beyond it gets
/// 431.
const HEADERS_MAX_BYTES: usize = 16 * 1024;

/// Largest body of a request without a key: that of a login.
const OPEN_BODY_MAX_BYTES: usize = 4 * 1024;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

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
    settings: ShellSettings,
    routes: RouteTable,
    router: Router,
    state: AppState,
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

/// A request that is authorized.
struct Admitted<'a> {
    route: &'a Route,
    request_id: &'a str,
    /// Its key, if it needs one.
    key: Option<Arc<KnownKey>>,
    /// Whether it needs none. It takes no permit then.
    is_open: bool,
    /// Probes do not wait for a turn, and take no permit either.
    is_probe: bool,
}

impl Shell {
    /// The shell around `router`, of which only the paths of `routes` can be called.
    pub fn new(
        guard: Guard,
        state: AppState,
        settings: &ShellSettings,
        routes: RouteTable,
        router: Router,
    ) -> Result<Self, SysError> {
        Ok(Self {
            metrics: Arc::clone(&state.metrics),
            ids: RequestIds::new()?,
            old_clients: OldClients::default(),
            guard,
            reads: Pace::of_this_machine(),
            open: Pace::of_this_machine(),
            reports: Arc::clone(&state.service.reports),
            large_bodies: Arc::clone(&state.service.bodies),
            permits: Semaphore::new(settings.max_concurrent_requests.min(Semaphore::MAX_PERMITS)),
            bodies: BodyBudget::new(settings.bodies_bytes),
            settings: settings.clone(),
            routes,
            // The shell reads bodies, within its own limit.
            router: router.layer(DefaultBodyLimit::disable()),
            state,
        })
    }

    /// The response to a request of this peer.
    pub async fn respond<B>(&self, request: hyper::Request<B>, peer: Option<Arc<Peer>>) -> Response
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send,
    {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        self.settings.path_prefix.strip(&mut parts.uri);
        let route = self.routes.of(parts.uri.path());
        let pages_of = self.guard.pages_of(&parts.headers, route);
        self.old_clients.note(&parts.headers);
        let id = self.ids.of(&parts.headers);
        let running = RunningRequest::begin(&self.metrics, id, &parts, route, started);
        let (uri, method) = (parts.uri.clone(), parts.method.clone());
        let response = {
            let (body, peer) = (pin!(body), peer.as_deref());
            let run = pin!(self.admit(&mut parts, body, peer, route, running.id()));
            let run = running.duels().within(run.instrument(running.span()));
            run.instrument(running.exported()).await
        };
        let response = match pages_of {
            None => response,
            Some(page_of) => match take_problem(response, &method, uri.path()) {
                (response, None) => response,
                (response, Some(problem)) => {
                    let page = self.settings.path_prefix.put_before(page_of(&problem));
                    let mut page = Box::pin(page).await;
                    page.headers_mut().extend(problem.headers().clone());
                    if let Some(allow) = response.headers().get(header::ALLOW) {
                        page.headers_mut().insert(header::ALLOW, allow.clone());
                    }
                    page.extensions_mut().extend(response.extensions().clone());
                    page
                }
            },
        };
        running.end(response, uri.path())
    }

    /// Run a request if it is authorized.
    async fn admit<B>(
        &self,
        parts: &mut Parts,
        body: Pin<&mut B>,
        peer: Option<&Peer>,
        route: &Route,
        request_id: &str,
    ) -> Response
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send,
    {
        if let Err(problem) = check_headers(&parts.headers) {
            return problem.into_response();
        }
        let authorization = match self.guard.authorize(parts, route) {
            Ok(Authorization::UnknownKey) => match Box::pin(self.read_keys()).await {
                Ok(()) => self.guard.authorize(parts, route),
                Err(problem) => Err(Box::new(problem.into_response())),
            },
            decided => decided,
        };
        let (key, is_open) = match authorization {
            Ok(Authorization::Admitted(key)) => (key, false),
            Ok(Authorization::Open) => (None, true),
            Ok(Authorization::UnknownKey) => return unknown_key().into_response(),
            Err(refusal) => return Box::pin(self.settings.path_prefix.put_before(*refusal)).await,
        };
        if let Some(peer) = peer.filter(|_| !is_open) {
            peer.note_authorized(key.as_ref(), Instant::now());
        }
        let is_probe = is_probe(parts.uri.path());
        let limit = match is_open && !is_probe {
            true => self.settings.open_timeout,
            // a probe of the database has a time limit of its own
            false => self.settings.request_timeout,
        };
        let id = key.as_ref().map(|key| key.id().clone());
        let run =
            pin!(self.run(parts, body, Admitted { route, request_id, key, is_open, is_probe }));
        let run = tokio::time::timeout(limit, run);
        let response = owned_by(id.clone(), run).await.unwrap_or_else(|_| {
            Err(Problem::new(ProblemKind::Timeout, ProblemKind::Timeout.meaning()))
        });
        with_key(id, response.into_response())
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

    /// Run an authorized request once its body is here, if there is a permit. Refusing a request at
    /// once, instead of queueing it, keeps the running ones fast.
    async fn run<B>(
        &self,
        parts: &mut Parts,
        body: Pin<&mut B>,
        admitted: Admitted<'_>,
    ) -> Result<Response, Problem>
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let Admitted { is_open, is_probe, .. } = admitted;
        let limit = if is_open { OPEN_BODY_MAX_BYTES } else { self.settings.body_limit_bytes };
        let (bytes, _share) = self.bodies.read(&parts.headers, body, limit).await?;
        let permit = match is_open || is_probe {
            true => None,
            false => Some(self.permit(admitted.key.as_ref()).ok_or_else(|| {
                self.metrics.http_requests_shed.inc();
                overloaded()
            })?),
        };
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        let compress = accepts_gzip(&parts.headers);
        let response = self.call(parts, bytes, admitted).await;
        let response = match is_probe {
            // metrics are not compressed: that would wait for the threads for reports
            true => response,
            false => self.deliver(response, compress).await,
        };
        drop(permit);
        if is_open && !is_probe {
            self.open.turn().await;
        } else if reads && !is_probe {
            self.reads.turn().await;
        }
        Ok(response)
    }

    /// The response of the operation.
    async fn call(&self, parts: &mut Parts, bytes: Bytes, admitted: Admitted<'_>) -> Response {
        let Admitted { route, request_id, key, is_open, .. } = admitted;
        if route.of_api && is_of_other_site(parts) {
            let detail = "This server accepts no requests to its API from pages of other sites. \
                          Send them from a server.";
            return forbidden(detail.into()).into_response();
        }
        if matches!(route.rule, Rule::Nothing) {
            return StatusCode::NOT_FOUND.into_response();
        }
        let is_large = is_long(bytes.len() * READ_NANOSECONDS);
        let threads = is_large.then(|| Arc::clone(&self.large_bodies));
        let direct = route.direct.filter(|_| parts.method == Method::POST);
        let direct = direct.and_then(|direct| Some((direct, Direct::name_in(parts.uri.path())?)));
        let called = match direct {
            Some((direct, name)) => {
                let body = WholeBody { bytes, threads };
                let call = pin!(direct.call(&self.state, name, &parts.headers, body));
                AssertUnwindSafe(call).catch_unwind().await.map(IntoResponse::into_response)
            }
            None => {
                self.settings.path_prefix.require_text(parts);
                if !is_open {
                    parts.extensions.insert(Caller::new(key, request_id));
                }
                if let Some(threads) = threads {
                    parts.extensions.insert(LargeBody(threads));
                }
                let request = request_of(parts, bytes);
                let call = Box::pin(async { self.router.clone().call(request).await });
                AssertUnwindSafe(call).catch_unwind().await.map(IntoResponse::into_response)
            }
        };
        called.unwrap_or_else(|_| {
            // The panic hook has logged the message and the place.
            self.metrics.panics.inc();
            Problem::unexpected().into_response()
        })
    }

    /// The response as the caller gets it.
    async fn deliver(&self, response: Response, compress: bool) -> Response {
        let response = match self.settings.path_prefix.as_str() {
            "" => response,
            _ => Box::pin(self.settings.path_prefix.put_before(response)).await,
        };
        match is_large(&response) {
            true => Box::pin(deliver(response, compress, &self.reports)).await,
            false => response,
        }
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
}

/// Take the request out of its parts.
fn request_of(parts: &mut Parts, bytes: Bytes) -> Request {
    let mut request = Request::new(Body::from(bytes));
    *request.method_mut() = match std::mem::take(&mut parts.method) {
        // The server leaves the body out once it knows the headers that depend on it.
        Method::HEAD => Method::GET,
        method => method,
    };
    *request.uri_mut() = std::mem::take(&mut parts.uri);
    *request.version_mut() = parts.version;
    *request.headers_mut() = std::mem::take(&mut parts.headers);
    *request.extensions_mut() = std::mem::take(&mut parts.extensions);
    request
}

/// Whether the browser says that a page of another site sent this request, which may change
/// something. Other callers send none of these headers.
fn is_of_other_site(parts: &Parts) -> bool {
    let headers = &parts.headers;
    if !headers.contains_key(header::ORIGIN) && !headers.contains_key(SEC_FETCH_SITE) {
        return false;
    }
    let mut head = hyper::Request::new(());
    *head.method_mut() = parts.method.clone();
    *head.uri_mut() = parts.uri.clone();
    *head.headers_mut() = headers.clone();
    let own = service_fn(|_| ready(Ok::<_, Infallible>(hyper::Response::new(()))));
    let checked = CsrfLayer::new().layer(own).call(head).now_or_never();
    checked.is_none_or(|Ok(answer)| answer.extensions().get::<ProtectionError>().is_some())
}

fn overloaded() -> Problem {
    Problem::new(
        ProblemKind::Overloaded,
        "The server is running its maximum number of requests; it did not process this one.",
    )
}

fn check_headers(headers: &HeaderMap) -> Result<(), Problem> {
    let bytes: usize =
        headers.iter().map(|(name, value)| name.as_str().len() + value.as_bytes().len()).sum();
    if bytes <= HEADERS_MAX_BYTES {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::HeaderFieldsTooLarge,
        format!("The headers are {bytes} bytes; this server accepts {HEADERS_MAX_BYTES}."),
    ))
}
