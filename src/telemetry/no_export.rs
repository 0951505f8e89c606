//! Stand-in for the export of spans, in a program built without the feature `otel`. It does nothing
//! but warn.

use tracing::Span;
use tracing_subscriber::layer::Identity;

use super::duels::DuelNumber;

/// The export that never runs.
pub struct Export(());

impl Export {
    /// Nothing to start.
    pub fn start() -> Result<Self, String> {
        Ok(Self(()))
    }

    /// No layer.
    pub fn layer(&self) -> Option<Identity> {
        None
    }

    /// Warn if the environment configures an export.
    pub fn log(&self) {
        let configured = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
            .into_iter()
            .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        if let Some(name) = configured {
            tracing::warn!(
                "{name} is set, but no spans are exported: this program was built without the \
                 feature `otel`"
            );
        }
    }

    /// Nothing to stop.
    pub fn stop(self) {}
}

/// No span.
pub fn request_span(_: &'static str, _: &str, _: Option<&str>) -> Span {
    Span::none()
}

/// Nothing to record.
pub fn end_request(_: &Span, _: u16, _: &str, _: &[DuelNumber]) {}

/// No trace.
pub fn trace_id(_: &Span) -> Option<String> {
    None
}

/// No span.
pub fn append_span() -> Span {
    Span::none()
}
