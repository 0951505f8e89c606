//! Spans to an OpenTelemetry collector over OTLP/HTTP, as a layer of tracing. Built with the
//! feature `otel`; configured by the variables of the OpenTelemetry specification.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{Layer, Registry};

use super::EXPORTED;
use super::duels::DuelNumber;

/// Time limit for exporting the remaining spans at shutdown.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The export, while it runs.
pub struct Export(Option<(SdkTracerProvider, String)>);

impl Export {
    /// Start the export if the environment names an endpoint. Must not be called within a tokio
    /// runtime: the exporter has threads of its own.
    pub fn start() -> Result<Self, String> {
        let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let Some(endpoint) = endpoint else { return Ok(Self(None)) };
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
        let exporter = SpanExporter::builder().with_http().with_protocol(protocol()?).build();
        let exporter = exporter.map_err(|error| format!("spans cannot be exported: {error}"))?;
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
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(Some((provider, endpoint))))
    }

    /// The layer that exports spans, if they are exported.
    pub fn layer(&self) -> Option<Box<dyn Layer<Registry> + Send + Sync>> {
        let (provider, _) = self.0.as_ref()?;
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("rankduel"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        Some(layer.with_filter(Targets::new().with_target(EXPORTED, tracing::Level::INFO)).boxed())
    }

    /// Log the state of the export.
    pub fn log(&self) {
        if let Some((_, endpoint)) = &self.0 {
            tracing::info!(endpoint, "spans are exported");
        }
    }

    /// Export the remaining spans and stop.
    pub fn stop(self) {
        if let Some((provider, _)) = self.0
            && let Err(error) = provider.shutdown_with_timeout(STOP_WITHIN)
        {
            tracing::warn!(%error, "the last spans may not have been exported");
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
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

/// The span of a request, as a part of its caller's trace if there is one.
pub fn request_span(method: &'static str, route: &str, traceparent: Option<&str>) -> Span {
    let span = tracing::info_span!(
        target: EXPORTED,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
        rankduel.request_id = tracing::field::Empty,
        rankduel.duel = tracing::field::Empty,
        rankduel.duels = tracing::field::Empty,
    );
    if let Some(traceparent) = traceparent {
        // without the layer, the span has no parent to set
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Traceparent(traceparent)));
    }
    span
}

/// Record the response of a request in its span.
pub fn end_request(span: &Span, status: u16, request_id: &str, duels: &[DuelNumber]) {
    // a field is looked up even if nothing is exported
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", status);
    span.record("rankduel.request_id", request_id);
    match duels {
        [] => {}
        [duel] => {
            span.record("rankduel.duel", tracing::field::display(duel));
        }
        many => {
            span.record("rankduel.duels", many.len());
        }
    }
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

/// The trace id of a span, if it is exported.
pub fn trace_id(span: &Span) -> Option<String> {
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| context.trace_id().to_string())
}

/// The span of waiting for the log.
pub fn append_span() -> Span {
    tracing::info_span!(target: EXPORTED, "append")
}

/// The one header of a trace context.
struct Traceparent<'a>(&'a str);

impl Extractor for Traceparent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == "traceparent").then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}
