//! A request while it runs: its log line, its metrics, and the headers of its response.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use rand::rngs::SysError;
use tracing::Span;

use super::routes::{Route, method_label};
use super::trace::{TRACEPARENT, trace_id, traceparent};
use super::versions;
use crate::http::problem::{ProblemContext, ProblemKind, describe};
use crate::telemetry::duels::{DuelNumber, RequestDuels};
use crate::telemetry::export;
use rankduel_engine::access::KeyId;
use rankduel_engine::metrics::Metrics;

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
        let digits = if number >> 32 == 0 { 8 } else { 16 };
        // Without room to spare, it becomes a header as it is.
        let mut id = String::with_capacity(self.process.len() + 1 + digits);
        id.push_str(&self.process);
        id.push('-');
        // Every request needs an id, and `write!` of a number shows in a profile.
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

/// The status under which a request is counted if its caller disconnects before the response.
const CALLER_DISCONNECTED: u16 = 499;

/// A request while it runs. It is logged and counted once, however it ends.
pub(crate) struct RunningRequest<'a> {
    metrics: &'a Metrics,
    started: Instant,
    method: Method,
    route: &'a Route,
    /// Empty once its response has it, and it is logged and counted.
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

impl<'a> RunningRequest<'a> {
    /// Start to count a request.
    pub fn begin(
        metrics: &'a Metrics,
        id: String,
        request: &Parts,
        route: &'a Route,
        started: Instant,
    ) -> Self {
        let caller = traceparent(&request.headers);
        let exported = export::request_span(method_label(&request.method), &route.template, caller);
        metrics.http_requests_in_flight.inc();
        Self {
            started,
            method: request.method.clone(),
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
            metrics,
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
        if let Some(traceparent) = self.traceparent.take() {
            headers.insert(TRACEPARENT, traceparent);
        }
        let status = response.status();
        let is_refused = status.is_client_error() || status.is_server_error();
        self.outcome = Some(Outcome {
            status,
            key: response.extensions().get().cloned(),
            problem: response.extensions().get().copied(),
            experiment: is_refused.then(|| experiment_in(&self.route.template, path)).flatten(),
        });
        self.close();
        if let Ok(id) = HeaderValue::try_from(std::mem::take(&mut self.id)) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }

    /// Log and count the request.
    fn close(&mut self) {
        let method = method_label(&self.method);
        let elapsed = self.started.elapsed();
        let outcome = self.outcome.take();
        let status = outcome.as_ref().map_or(CALLER_DISCONNECTED, |it| it.status.as_u16());
        let duels = self.duels.take();
        export::end_request(&self.exported, status, &self.id, &duels);
        self.metrics.http_requests_in_flight.dec();
        self.route.count(self.metrics, &self.method, status, elapsed.as_secs_f64());
        self.log(method, status, elapsed, outcome.as_ref(), &duels);
    }

    /// Write the log line of the request, and those of its duels if there are several.
    fn log(
        &self,
        method: &'static str,
        status: u16,
        elapsed: Duration,
        outcome: Option<&Outcome>,
        duels: &[DuelNumber],
    ) {
        let route = &*self.route.template;
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

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if !self.id.is_empty() {
            self.close();
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
