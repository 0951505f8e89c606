//! A request while it runs: its log line, its metrics, and the headers of its response.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::request_id::REQUEST_ID;
use super::trace::{TRACEPARENT, TraceContext};
use crate::access::KeyId;
use crate::http::problem::{ProblemContext, describe};
use crate::telemetry::metrics::{Metrics, RequestLabels, RouteLabels};
use crate::telemetry::trace::RequestTrace;

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
    trace_context: Option<TraceContext>,
    /// Of the caller, else of the exported span.
    trace_id: Option<String>,
    trace: Arc<RequestTrace>,
    /// Status and key, once the response is known.
    outcome: Option<(StatusCode, Option<KeyId>)>,
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
        let trace_context = TraceContext::of(request.headers());
        let parent = trace_context.as_ref().map(TraceContext::parent);
        let trace = RequestTrace::start(method_label(request.method()), route.as_str(), parent);
        metrics.http_requests_in_flight.inc();
        Self {
            started,
            method: request.method().clone(),
            route,
            id,
            trace_id: trace_context
                .as_ref()
                .map(|context| context.trace_id().to_owned())
                .or_else(|| trace.trace_id()),
            trace_context,
            trace,
            outcome: None,
            metrics: Arc::clone(metrics),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Collects the duels of the request.
    pub fn trace(&self) -> Arc<RequestTrace> {
        Arc::clone(&self.trace)
    }

    /// The span of the request's log lines.
    pub fn span(&self) -> tracing::Span {
        let span = tracing::info_span!(
            "request",
            request_id = %self.id,
            trace_id = tracing::field::Empty
        );
        if let Some(trace_id) = &self.trace_id {
            span.record("trace_id", trace_id);
        }
        span
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
        if let Ok(id) = HeaderValue::from_str(&self.id) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(context) = &self.trace_context {
            headers.insert(TRACEPARENT, context.header());
        }
        self.outcome = Some((response.status(), response.extensions().get().cloned()));
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
        let route = self.route.as_str();
        let method = method_label(&self.method);
        let elapsed = self.started.elapsed();
        let (status, key) = match &self.outcome {
            Some((status, key)) => (status.as_u16(), key.as_ref()),
            None => (CALLER_DISCONNECTED, None),
        };
        let duels = self.trace.end(status, &self.id);
        let (duel, duel_count) = match duels.all[..] {
            [] => (None, None),
            // Formatted only if the line is logged.
            [duel] => (Some(tracing::field::display(duel)), None),
            ref many => (None, Some(many.len())),
        };
        self.metrics.http_requests_in_flight.dec();
        self.count(method, status, elapsed.as_secs_f64());

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
