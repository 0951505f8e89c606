//! Exports spans to an OpenTelemetry collector over OTLP/HTTP. Built with the feature `otel`;
//! configured by the variables of the OpenTelemetry specification.
//!
//! Each request has one span, named by its route. A duel has a span of its own, in a trace of its
//! own, with a link to the request that issued it. The ids of that span are a function of the
//! duel's number. So feedback links to its duel from the `duel_id` alone, whichever trace the duel
//! was requested in, and nothing needs to be stored.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::trace::{
    Link, Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _,
    TraceFlags, TraceId, TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter as Otlp, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Config, IdGenerator, RandomIdGenerator, SamplingDecision, SamplingResult, SdkTracer,
    SdkTracerProvider, ShouldSample, Span, SpanData, SpanExporter,
};
use sha2::{Digest, Sha256};

use super::request::{DuelNumber, Duels, Parent};

/// Time limit for exporting the remaining spans at shutdown.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// Shortest time between two log lines about failures.
const LOG_FAILURES_EVERY: Duration = Duration::from_secs(60);
const DUEL: &str = "rankduel.duel";

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// The export, while it runs.
pub struct Export(Option<SdkTracerProvider>);

impl Export {
    /// Start the export if the environment names an endpoint. Must not be called within a tokio
    /// runtime: the exporter has threads of its own.
    pub fn start() -> Result<Self, String> {
        let Some(endpoint) = endpoint() else { return Ok(Self(None)) };
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none")
        {
            return Ok(Self(None));
        }
        if !endpoint.starts_with("http://") {
            return Err(format!(
                "the OTLP endpoint {endpoint:?} is not an http:// URL; spans are sent without TLS, \
                 to a collector on this machine or on the same private network"
            ));
        }
        let otlp = Otlp::builder().with_http().with_protocol(protocol()?).build();
        let otlp = otlp.map_err(|error| format!("spans cannot be exported: {error}"))?;
        let mut resource = Resource::builder()
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
        if variable("OTEL_SERVICE_NAME").is_none()
            && !variable("OTEL_RESOURCE_ATTRIBUTES")
                .is_some_and(|value| value.contains("service.name="))
        {
            resource = resource.with_service_name("rankduel");
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_sampler(Sampling(Config::default().sampler))
            .with_id_generator(Ids::default())
            .with_batch_exporter(LoggingExporter { otlp, failures: Mutex::default() })
            .build();
        if TRACER.set(provider.tracer("rankduel")).is_err() {
            return Err("the export of spans has already started".into());
        }
        tracing::info!(endpoint, "spans are exported");
        Ok(Self(Some(provider)))
    }

    /// Export the remaining spans and stop.
    pub fn stop(self) {
        if let Some(provider) = self.0
            && let Err(error) = provider.shutdown_with_timeout(STOP_WITHIN)
        {
            tracing::warn!(%error, "the last spans may not have been exported");
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn endpoint() -> Option<String> {
    variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

fn protocol() -> Result<Protocol, String> {
    let name = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        .or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL"));
    match name.as_deref() {
        None | Some("http/protobuf") => Ok(Protocol::HttpBinary),
        Some("http/json") => Ok(Protocol::HttpJson),
        Some(other) => Err(format!(
            "the OTLP protocol {other:?} is not supported; use http/protobuf or http/json"
        )),
    }
}

/// The span of a request.
pub struct RequestSpan(Option<(SpanContext, Mutex<Span>)>);

/// The span of a part of a request; it ends when it is dropped.
pub struct ChildSpan {
    _span: Span,
}

impl RequestSpan {
    /// Start the span of a request, as a part of its caller's trace if there is one.
    pub fn start(method: &'static str, route: &str, parent: Option<Parent>) -> Self {
        let Some(tracer) = TRACER.get() else { return Self(None) };
        let parent = parent.map_or_else(Context::new, |parent| {
            let flags = TraceFlags::default().with_sampled(parent.sampled);
            let (trace, span) = (TraceId::from(parent.trace), SpanId::from(parent.span));
            let context = SpanContext::new(trace, span, flags, true, TraceState::default());
            Context::new().with_remote_span_context(context)
        });
        let attributes = vec![
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.route", route.to_owned()),
        ];
        let builder = SpanBuilder::from_name(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes(attributes);
        let span = tracer.build_with_context(builder, &parent);
        Self(Some((span.span_context().clone(), Mutex::new(span))))
    }

    /// Its trace id.
    pub fn trace_id(&self) -> Option<String> {
        self.0.as_ref().map(|(context, _)| context.trace_id().to_string())
    }

    /// Start a child span.
    pub fn child(&self, name: &'static str) -> Option<ChildSpan> {
        let (tracer, (context, _)) = (TRACER.get()?, self.0.as_ref()?);
        let parent = Context::new().with_remote_span_context(context.clone());
        Some(ChildSpan { _span: tracer.build_with_context(SpanBuilder::from_name(name), &parent) })
    }

    /// End the span: the request was answered.
    pub fn end(&self, status: u16, request_id: &str, duels: &Duels) {
        let (Some(tracer), Some((context, span))) = (TRACER.get(), &self.0) else { return };
        let mut span = span.lock().unwrap_or_else(PoisonError::into_inner);
        if !span.is_recording() {
            return;
        }
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status)));
        span.set_attribute(KeyValue::new("rankduel.request_id", request_id.to_owned()));
        if let [duel] = duels.all[..] {
            span.set_attribute(KeyValue::new(DUEL, duel.to_string()));
        }
        if status >= 500 {
            span.set_status(Status::error(""));
        }
        for &duel in &duels.all {
            span.add_link(context_of(duel), vec![KeyValue::new(DUEL, duel.to_string())]);
        }
        for &duel in &duels.all[..duels.issued] {
            record_duel_span(tracer, duel, context);
        }
        span.end();
    }
}

/// Record the span of a duel.
fn record_duel_span(tracer: &SdkTracer, duel: DuelNumber, issued_by: &SpanContext) {
    let builder = SpanBuilder::from_name("duel")
        .with_attributes(vec![KeyValue::new(DUEL, duel.to_string())])
        .with_links(vec![Link::with_context(issued_by.clone())]);
    DUEL_IDS.set(Some(ids_of(duel)));
    tracer.build_with_context(builder, &Context::new()).end();
    DUEL_IDS.set(None);
}

/// Trace id and span id of a duel.
fn ids_of(duel: DuelNumber) -> (TraceId, SpanId) {
    let mut hash = Sha256::new();
    hash.update(b"rankduel duel span\0");
    hash.update(duel.0.to_be_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    (
        TraceId::from_bytes(std::array::from_fn(|index| hash[index])),
        SpanId::from_bytes(std::array::from_fn(|index| hash[16 + index])),
    )
}

fn context_of(duel: DuelNumber) -> SpanContext {
    let (trace, span) = ids_of(duel);
    SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::default())
}

thread_local! {
    /// The ids of the duel span that is being built on this thread. A builder cannot set them, so
    /// the id generator reads them here.
    static DUEL_IDS: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        DUEL_IDS.get().map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        DUEL_IDS.get().map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

/// The configured sampler, except for duel spans: they are kept if their request's span is.
#[derive(Debug, Clone)]
struct Sampling(Box<dyn ShouldSample>);

impl ShouldSample for Sampling {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        if DUEL_IDS.get().is_some() {
            let decision = SamplingDecision::RecordAndSample;
            return SamplingResult {
                decision,
                attributes: Vec::new(),
                trace_state: TraceState::default(),
            };
        }
        self.0.should_sample(parent, trace, name, kind, attributes, links)
    }
}

/// An exporter that logs the loss of spans, at most once in [`LOG_FAILURES_EVERY`].
#[derive(Debug)]
struct LoggingExporter {
    otlp: Otlp,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    failing: bool,
    logged_at: Option<Instant>,
    /// Spans lost since the last log line.
    lost: usize,
}

impl LoggingExporter {
    fn log_result(&self, spans: usize, result: &OTelSdkResult) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) if failures.failing => {
                tracing::info!(lost = failures.lost, "spans are exported again");
                *failures = Failures::default();
            }
            Ok(()) => {}
            Err(error) => {
                failures.failing = true;
                failures.lost += spans;
                if failures.logged_at.is_none_or(|at| at.elapsed() >= LOG_FAILURES_EVERY) {
                    tracing::warn!(
                        %error,
                        lost = failures.lost,
                        "spans could not be exported and are lost; requests are not affected"
                    );
                    failures.logged_at = Some(Instant::now());
                    failures.lost = 0;
                }
            }
        }
    }
}

impl SpanExporter for LoggingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.otlp.export(batch).await;
        self.log_result(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.otlp.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
