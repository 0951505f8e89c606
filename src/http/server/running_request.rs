//! A request while it runs: its log line, its metrics, and the headers of its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use rand::rngs::SysError;
use tracing::Span;

use super::trace::{TRACEPARENT, trace_id, traceparent};
use super::versions;
use crate::http::problem::{ProblemContext, ProblemKind, describe};
use crate::telemetry::duels::{DuelNumber, RequestDuels};
use crate::telemetry::export;
use rankduel_engine::access::KeyId;
use rankduel_engine::metrics::{Metrics, RequestLabels, RouteLabels};

/// Identifies a request in the log, in problems and to its caller.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Makes request ids: a random number of the process, then a counter.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// 16 hexadecimal digits.
    process: String,
    next: AtomicU64,
}

impl RequestIds {
    pub fn new() -> Result<Self, SysError> {
        let process = format!("{:016x}", rankduel_store::entropy::number()?);
        Ok(Self { process, next: AtomicU64::new(0) })
    }

    fn fresh(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut id = String::with_capacity(self.process.len() + 17);
        id.push_str(&self.process);
        id.push('-');
        // Every request needs an id, and `write!` of a number shows in a profile.
        let digits = if number >> 32 == 0 { 8 } else { 16 };
        for place in (0..digits).rev() {
            id.extend(char::from_digit((number >> (4 * place)) as u32 & 15, 16));
        }
        id
    }

    /// The id that the caller sent, if it is safe to log; else a new one.
    pub fn of(&self, headers: &HeaderMap) -> String {
        let is_safe = |id: &&str| {
            (1..=128).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(&byte))
        };
        match headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_safe) {
            Some(id) => id.to_owned(),
            None => self.fresh(),
        }
    }
}

/// The route of a request that matches none.
const UNMATCHED: &str = "unmatched";

/// The status under which a request is counted if its caller disconnects before the response.
const CALLER_DISCONNECTED: u16 = 499;

/// The route of a request.
pub(crate) enum Route {
    /// As the router matched it, if it did.
    Matched(Option<MatchedPath>),
    /// Known without the router, with its metrics.
    Known(&'static str, Arc<RouteMetrics>),
}

impl Route {
    fn as_str(&self) -> &str {
        match self {
            Self::Matched(path) => path.as_ref().map_or(UNMATCHED, MatchedPath::as_str),
            Self::Known(path, _) => path,
        }
    }
}

/// The metrics of one method and route, looked up once.
pub(crate) struct RouteMetrics {
    duration: Histogram,
    /// Responses with status 200.
    succeeded: Counter,
}

impl RouteMetrics {
    pub fn new(metrics: &Metrics, method: &'static str, route: &str) -> Self {
        let labels = RouteLabels { method, route: route.to_owned() };
        let duration = metrics.http_request_duration_seconds.get_or_create(&labels).clone();
        let labels = RequestLabels { method, route: route.to_owned(), status: 200 };
        Self { duration, succeeded: metrics.http_requests.get_or_create(&labels).clone() }
    }
}

/// A request while it runs. It is logged and counted once, however it ends.
pub(crate) struct RunningRequest {
    metrics: Arc<Metrics>,
    started: Instant,
    method: Method,
    route: Route,
    id: String,
    /// As the caller sent it.
    traceparent: Option<HeaderValue>,
    /// Of the caller, else of the exported span.
    trace_id: Option<String>,
    duels: RequestDuels,
    exported: Span,
    /// Once the response is known.
    outcome: Option<Outcome>,
}

/// The part of a response that its log line has.
struct Outcome {
    status: StatusCode,
    key: Option<KeyId>,
    problem: Option<ProblemKind>,
    /// The experiment that a refused request names.
    experiment: Option<String>,
}

/// Most bytes of a name in a log line: more than any experiment has.
const NAME_MAX: usize = 128;

/// The name of the experiment in a path of this route, as it was sent.
fn experiment_in(route: &str, path: &str) -> Option<String> {
    let place = route.split('/').position(|part| part == "{name}")?;
    let name = path.split('/').nth(place)?;
    (name.len() <= NAME_MAX).then(|| name.to_owned())
}

impl RunningRequest {
    /// Start to count a request.
    pub fn begin(
        metrics: &Arc<Metrics>,
        id: String,
        request: &Request,
        route: Route,
        started: Instant,
    ) -> Self {
        let caller = traceparent(request.headers());
        let exported = export::request_span(method_label(request.method()), route.as_str(), caller);
        metrics.http_requests_in_flight.inc();
        Self {
            started,
            method: request.method().clone(),
            route,
            id,
            trace_id: match caller {
                Some(caller) => Some(trace_id(caller).to_owned()),
                None => export::trace_id(&exported),
            },
            traceparent: caller.and_then(|caller| HeaderValue::from_str(caller).ok()),
            duels: RequestDuels::default(),
            exported,
            outcome: None,
            metrics: Arc::clone(metrics),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Collects the duels of the request.
    pub fn duels(&self) -> RequestDuels {
        self.duels.clone()
    }

    /// The span that is exported, around the one of the log lines.
    pub fn exported(&self) -> Span {
        self.exported.clone()
    }

    /// The span of the request's log lines.
    pub fn span(&self) -> Span {
        tracing::info_span!("request", request_id = %self.id, trace_id = self.trace_id)
    }

    /// Finish the response: write the body of a problem, and set the headers that every response
    /// has.
    pub fn end(mut self, response: Response, path: &str) -> Response {
        let context =
            ProblemContext { path, request_id: &self.id, trace_id: self.trace_id.as_deref() };
        let mut response = describe(response, &self.method, context);
        let headers = response.headers_mut();
        // A response with an ETag may be stored, but must be revalidated. Any other is valid only
        // at its moment.
        let cache = if headers.contains_key(header::ETAG) { "no-cache" } else { "no-store" };
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(cache));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        versions::add_version(headers);
        if let Ok(id) = HeaderValue::from_str(&self.id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(traceparent) = self.traceparent.take() {
            headers.insert(TRACEPARENT, traceparent);
        }
        let status = response.status();
        let is_refused = status.is_client_error() || status.is_server_error();
        self.outcome = Some(Outcome {
            status,
            key: response.extensions().get().cloned(),
            problem: response.extensions().get().copied(),
            experiment: is_refused.then(|| experiment_in(self.route.as_str(), path)).flatten(),
        });
        response
    }

    fn count(&self, method: &'static str, status: u16, seconds: f64) {
        match &self.route {
            Route::Known(_, metrics) if status == 200 => {
                metrics.duration.observe(seconds);
                metrics.succeeded.inc();
            }
            route => {
                let route = route.as_str();
                self.metrics
                    .http_request_duration_seconds
                    .get_or_create(&RouteLabels { method, route: route.to_owned() })
                    .observe(seconds);
                self.metrics
                    .http_requests
                    .get_or_create(&RequestLabels { method, route: route.to_owned(), status })
                    .inc();
            }
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let method = method_label(&self.method);
        let elapsed = self.started.elapsed();
        let outcome = self.outcome.take();
        let status = outcome.as_ref().map_or(CALLER_DISCONNECTED, |it| it.status.as_u16());
        let duels = self.duels.take();
        export::end_request(&self.exported, status, &self.id, &duels);
        self.metrics.http_requests_in_flight.dec();
        self.count(method, status, elapsed.as_secs_f64());
        self.log(method, status, elapsed, outcome.as_ref(), &duels);
    }
}

impl RunningRequest {
    /// Write the log line of the request, and those of its duels if there are several.
    fn log(
        &self,
        method: &'static str,
        status: u16,
        elapsed: Duration,
        outcome: Option<&Outcome>,
        duels: &[DuelNumber],
    ) {
        let route = self.route.as_str();
        let key = outcome.and_then(|outcome| outcome.key.as_ref());
        let problem = outcome.and_then(|outcome| outcome.problem);
        let experiment = outcome.and_then(|outcome| outcome.experiment.as_deref());
        let (duel, duel_count) = match duels {
            [] => (None, None),
            // formatted only if the line is logged
            [duel] => (Some(tracing::field::display(duel)), None),
            many => (None, Some(many.len())),
        };
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: "rankduel::access",
                    $level,
                    request_id = %self.id,
                    trace_id = self.trace_id,
                    method,
                    route,
                    status,
                    "type" = problem.map(ProblemKind::type_uri),
                    experiment,
                    duration_ms = elapsed.as_micros() as f64 / 1000.0,
                    key = key.map(KeyId::as_str),
                    duel,
                    duels = duel_count,
                    "request"
                )
            };
        }
        if duel_count.is_some() {
            for duel in duels {
                tracing::debug!(
                    target: "rankduel::duels",
                    request_id = %self.id,
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

/// Add the caller's key to a response, for the log line.
pub(crate) fn with_key(key: Option<KeyId>, mut response: Response) -> Response {
    if let Some(key) = key {
        response.extensions_mut().insert(key);
    }
    response
}

/// Whether machines request this path every few seconds. Such requests are never shed, and not
/// logged by default while they succeed.
pub(crate) fn is_probe(path: &str) -> bool {
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
