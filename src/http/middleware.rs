//! The shell around every route: what all requests have in common.
//!
//! From the outside in: [`observe`] (id, trace, log line, metrics, problems), then the key
//! ([`super::auth`]), then a place among the running requests ([`Shell::admit`]), then panics, the
//! time limit, the body limit and compression. The order matters: what is refused is seen and told
//! like everything else, and a caller without a key takes nobody's place.
//!
//! What can be answered from memory does not come this way: [`super::front`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate as _, SizeAbove};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;
use tracing::Instrument as _;

use super::auth::{self, ApiKeys, Authorization, Caller, Guard, KeyId, Rules};
use super::problem::{PROBLEM_JSON, Problem, ProblemKind};
use super::trace::TraceContext;
use crate::access::ApiKeySet;
use crate::telemetry::metrics::{Metrics, RequestLabels, RouteLabels};
use crate::telemetry::trace::RequestTrace;

/// Names a request, in the log, in problems and to its caller.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Names and values of a request's headers together, in bytes; beyond it the answer is 431.
const HEADERS_MAX_BYTES: usize = 16 * 1024;

/// Answers below this are not compressed: they fit into a few packets anyway, and compressing costs
/// more time than sending. The answers of the hot path never reach it.
const COMPRESS_ABOVE_BYTES: u64 = 4 * 1024;

/// The route of a request that has none.
const UNMATCHED: &str = "unmatched";

/// The status a request is counted under whose caller went away before it was answered.
const CALLER_WENT_AWAY: u16 = 499;

/// What the shell can be tuned by.
#[derive(Debug, Clone)]
pub struct ShellSettings {
    /// Keys that may do everything, beside those in the database; with no keys at all, everybody
    /// may call.
    pub keys: ApiKeys,
    /// A request that takes longer is given up and answered with 504.
    pub request_timeout: Duration,
    /// A larger body is refused with 413.
    pub body_limit_bytes: usize,
    /// Requests that may run at once; one more is refused with 503.
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

/// Put the shell around `router`.
pub fn wrap(
    router: Router,
    settings: &ShellSettings,
    metrics: &Arc<Metrics>,
) -> Result<Router, ShellError> {
    let guard = Guard::new(Arc::new(ApiKeySet::of_given(&settings.keys)), None, Rules::default());
    let shell = Shell::new(guard, settings, metrics)?;
    Ok(wrap_in(&Arc::new(shell), router, settings))
}

/// Put this shell around `router`.
pub(crate) fn wrap_in(shell: &Arc<Shell>, router: Router, settings: &ShellSettings) -> Router {
    let panics = shell.metrics.panics.clone();
    let compress = DefaultPredicate::new().and(SizeAbove::new(COMPRESS_ABOVE_BYTES));
    let layers = ServiceBuilder::new()
        .layer(from_fn_with_state(Arc::clone(shell), observe))
        .layer(CatchPanicLayer::custom(move |_| panicked(&panics)))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::GATEWAY_TIMEOUT,
            settings.request_timeout,
        ))
        .layer(RequestBodyLimitLayer::new(settings.body_limit_bytes))
        .layer(CompressionLayer::new().compress_when(compress));
    // The framework's own limit is fixed; ours stands in for it.
    router.layer(axum::extract::DefaultBodyLimit::disable()).layer(layers)
}

/// The answer to a request whose handler panicked.
pub(crate) fn panicked(panics: &Counter) -> Response {
    // The panic hook has logged it, with its place and message.
    panics.inc();
    Problem::new(
        ProblemKind::Internal,
        "The server failed; its log has the cause under this request_id.",
    )
    .into_response()
}

/// Why there is no shell.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no randomness: {0}")]
pub struct ShellError(#[from] rand::rngs::SysError);

/// Makes request ids: random for the process, then counted.
#[derive(Debug)]
struct RequestIds {
    /// 16 hexadecimal digits.
    process: String,
    next: AtomicU64,
}

impl RequestIds {
    fn new() -> Result<Self, ShellError> {
        Ok(Self { process: format!("{:016x}", crate::entropy::number()?), next: AtomicU64::new(0) })
    }

    fn fresh(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(self.process.len() + 17);
        id.push_str(&self.process);
        id.push('-');
        // every request has one, and the formatting of numbers shows in a profile
        let digits = if number >> 32 == 0 { 8 } else { 16 };
        for place in (0..digits).rev() {
            id.extend(char::from_digit((number >> (4 * place)) as u32 & 15, 16));
        }
        id
    }

    /// The caller's own, if it is one that a log can hold; else a new one.
    fn of(&self, headers: &HeaderMap) -> String {
        let sane = |id: &&str| {
            (1..=128).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(&byte))
        };
        match headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(sane) {
            Some(id) => id.to_owned(),
            None => self.fresh(),
        }
    }
}

/// What all requests share.
pub(crate) struct Shell {
    pub metrics: Arc<Metrics>,
    ids: RequestIds,
    pub guard: Guard,
    /// Of the requests that run.
    pub places: Semaphore,
}

/// Where a request goes.
pub(crate) enum Route {
    /// As the router matched it, if it did.
    Routed(Option<MatchedPath>),
    /// Known without the router, with what its answers are counted by.
    Known(&'static str, Arc<RouteMetrics>),
}

impl Route {
    fn as_str(&self) -> &str {
        match self {
            Self::Routed(path) => path.as_ref().map_or(UNMATCHED, MatchedPath::as_str),
            Self::Known(path, _) => path,
        }
    }
}

/// The metrics of one method and route, found once.
pub(crate) struct RouteMetrics {
    duration: Histogram,
    answered: Counter,
}

impl RouteMetrics {
    pub fn new(metrics: &Metrics, method: &'static str, route: &str) -> Self {
        let labels = RouteLabels { method, route: route.to_owned() };
        let duration = metrics.http_request_duration_seconds.get_or_create(&labels).clone();
        let labels = RequestLabels { method, route: route.to_owned(), status: 200 };
        Self { duration, answered: metrics.http_requests.get_or_create(&labels).clone() }
    }
}

/// A request that is running. However it ends, it is logged and counted once.
pub(crate) struct Running {
    metrics: Arc<Metrics>,
    started: Instant,
    method: Method,
    route: Route,
    request_id: String,
    /// As the caller sent it.
    trace: Option<TraceContext>,
    /// Of the caller, or else of the span that is exported.
    trace_id: Option<String>,
    pub told: Arc<RequestTrace>,
    /// Set when the answer is there.
    answer: Option<(StatusCode, Option<KeyId>)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let route = self.route.as_str();
        let method = method_label(&self.method);
        let elapsed = self.started.elapsed();
        let (status, key) = match &self.answer {
            Some((status, key)) => (status.as_u16(), key.as_ref()),
            None => (CALLER_WENT_AWAY, None),
        };
        let duels = self.told.end(status, &self.request_id);
        let (duel, duel_count) = match duels.all[..] {
            [] => (None, None),
            // written out only where the line is
            [duel] => (Some(tracing::field::display(duel)), None),
            ref many => (None, Some(many.len())),
        };
        self.metrics.http_requests_in_flight.dec();
        match &self.route {
            Route::Known(_, metrics) if status == 200 => {
                metrics.duration.observe(elapsed.as_secs_f64());
                metrics.answered.inc();
            }
            _ => {
                self.metrics
                    .http_request_duration_seconds
                    .get_or_create(&RouteLabels { method, route: route.to_owned() })
                    .observe(elapsed.as_secs_f64());
                self.metrics
                    .http_requests
                    .get_or_create(&RequestLabels { method, route: route.to_owned(), status })
                    .inc();
            }
        }

        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: "rankduel::access",
                    $level,
                    request_id = %self.request_id,
                    trace_id = self.trace_id,
                    method,
                    route,
                    status,
                    duration_ms = elapsed.as_micros() as f64 / 1000.0,
                    key = key.map(KeyId::as_str),
                    duel,
                    duels = duel_count,
                    "request"
                )
            };
        }
        if duel_count.is_some() {
            for duel in &duels.all {
                tracing::debug!(
                    target: "rankduel::duels",
                    request_id = %self.request_id,
                    trace_id = self.trace_id,
                    %duel,
                    "duel"
                );
            }
        }
        match status {
            500.. => line!(tracing::Level::WARN),
            ..400 if is_probe(route) => line!(tracing::Level::DEBUG),
            _ => line!(tracing::Level::INFO),
        }
    }
}

/// What machines ask for every few seconds: never shed, and no news while it goes well.
fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics")
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The outermost layer: names the request, logs and counts it, and writes problems.
async fn observe(State(shell): State<Arc<Shell>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let running = shell.begin(&request, Route::Routed(route), Instant::now());
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
        let told = Arc::clone(&running.told);
        let answer = shell.admit(request, next, &running.request_id).instrument(running.span());
        told.within(answer).await
    };
    running.end(response, uri.path())
}

fn headers_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.as_bytes().len()).sum()
}

/// Whether a request's headers are as small as they have to be.
pub(crate) fn headers_fit(headers: &HeaderMap) -> bool {
    headers_bytes(headers) <= HEADERS_MAX_BYTES
}

impl Running {
    /// What log lines of this request are within.
    pub fn span(&self) -> tracing::Span {
        let span = tracing::info_span!("request", request_id = %self.request_id, trace_id = tracing::field::Empty);
        if let Some(trace_id) = &self.trace_id {
            span.record("trace_id", trace_id);
        }
        span
    }

    /// It is answered with this: a problem is written out, and every answer gets the headers that
    /// all have.
    pub fn end(mut self, response: Response, path: &str) -> Response {
        let mut response = describe(response, &self, path);
        let headers = response.headers_mut();
        // What has an ETag may be kept, but must be asked for anew; everything else is of the
        // moment.
        let keep = if headers.contains_key(header::ETAG) { "no-cache" } else { "no-store" };
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(keep));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(trace) = &self.trace {
            headers.insert(super::trace::TRACEPARENT, trace.header());
        }
        self.answer = Some((response.status(), response.extensions().get().cloned()));
        response
    }
}

/// Write the problem that a response carries, or that a bare answer of the framework means.
fn describe(response: Response, request: &Running, path: &str) -> Response {
    let (mut parts, body) = response.into_parts();
    let problem = match parts.extensions.remove::<Problem>() {
        Some(problem) => problem,
        None => match bare(&parts, &request.method, path) {
            Some(problem) => {
                parts.headers.extend(problem.clone().into_response().into_parts().0.headers);
                problem
            }
            None => return Response::from_parts(parts, body),
        },
    };
    parts.status = problem.kind().status();
    let document =
        problem.document(path.to_owned(), request.request_id.clone(), request.trace_id.clone());
    // Strings and numbers alone: there is nothing in it that cannot be written.
    let body = serde_json::to_vec(&document).unwrap_or_default();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_ENCODING);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    Response::from_parts(parts, body.into())
}

/// What an error answer means that nobody has described. Pages for people stay as they are.
fn bare(parts: &Parts, method: &Method, path: &str) -> Option<Problem> {
    let described = |value: &HeaderValue| {
        value
            .to_str()
            .is_ok_and(|text| text.starts_with("text/html") || text.starts_with("application/"))
    };
    if !(parts.status.is_client_error() || parts.status.is_server_error())
        || parts.headers.get(header::CONTENT_TYPE).is_some_and(described)
    {
        return None;
    }
    let kind = ProblemKind::of_status(parts.status)?;
    let detail = match kind {
        ProblemKind::NotFound => format!("There is nothing at {path}."),
        ProblemKind::MethodNotAllowed => {
            format!("{method} is not allowed at {path}; the Allow header lists what is.")
        }
        kind => kind.meaning().to_owned(),
    };
    Some(Problem::new(kind, detail))
}

impl Shell {
    /// What a server's requests share.
    pub fn new(
        guard: Guard,
        settings: &ShellSettings,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, ShellError> {
        Ok(Self {
            metrics: Arc::clone(metrics),
            ids: RequestIds::new()?,
            guard,
            places: Semaphore::new(settings.max_concurrent_requests.min(Semaphore::MAX_PERMITS)),
        })
    }

    /// A request has come.
    pub fn begin(&self, request: &Request, route: Route, started: Instant) -> Running {
        let trace = TraceContext::of(request.headers());
        let parent = trace.as_ref().map(TraceContext::parent);
        let told = RequestTrace::start(method_label(request.method()), route.as_str(), parent);
        self.metrics.http_requests_in_flight.inc();
        Running {
            started,
            method: request.method().clone(),
            route,
            request_id: self.ids.of(request.headers()),
            trace_id: trace
                .as_ref()
                .map(|trace| trace.trace_id().to_owned())
                .or_else(|| told.trace_id()),
            trace,
            told,
            answer: None,
            metrics: Arc::clone(&self.metrics),
        }
    }

    /// Let in who may come in, and refuse at once what would only wait, so that what runs stays
    /// fast.
    async fn admit(&self, mut request: Request, next: Next, request_id: &str) -> Response {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map(MatchedPath::as_str);
        let mut judged = self.guard.judge(&request, route);
        if let Ok(Authorization::Unknown) = judged {
            judged = match self.guard.refresh().await {
                Ok(()) => self.guard.judge(&request, route),
                Err(problem) => Err(Box::new(problem.into_response())),
            };
        }
        let caller = match judged {
            Ok(Authorization::Admitted(key)) => key,
            Ok(Authorization::Unknown) => return auth::unknown().into_response(),
            Err(refusal) => return *refusal,
        };
        let key = caller.as_ref().map(|key| key.id().clone());
        let _place = if is_probe(request.uri().path()) {
            None
        } else {
            match self.places.try_acquire() {
                Ok(place) => Some(place),
                Err(_) => {
                    self.metrics.http_requests_shed.inc();
                    return named(
                        key,
                        Problem::new(
                            ProblemKind::Overloaded,
                            "As many requests are running as this server takes on; nothing of this one was done.",
                        )
                        .into_response(),
                    );
                }
            }
        };
        request.extensions_mut().insert(Caller::new(caller, request_id));
        let response = next.run(request).await;
        named(key, response)
    }
}

/// With the name of the caller's key, for the log.
pub(crate) fn named(key: Option<KeyId>, mut response: Response) -> Response {
    if let Some(key) = key {
        response.extensions_mut().insert(key);
    }
    response
}
