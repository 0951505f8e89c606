//! Stand-in for the export of spans, in a program built without the feature `otel`. It does nothing
//! but warn.

use super::request::{Duels, Parent};

/// The export that never runs.
pub struct Export;

impl Export {
    /// Warn if the environment configures an export.
    pub fn start() -> Result<Self, String> {
        let configured = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
            .into_iter()
            .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        if let Some(name) = configured {
            tracing::warn!(
                "{name} is set, but no spans are exported: this program was built without the \
                 feature `otel`"
            );
        }
        Ok(Self)
    }

    /// Does nothing.
    pub fn stop(self) {}
}

/// A span that is never recorded.
pub struct RequestSpan;

/// A span that is never recorded.
pub struct ChildSpan;

impl RequestSpan {
    /// Does nothing.
    pub fn start(_method: &'static str, _route: &str, _parent: Option<Parent>) -> Self {
        Self
    }

    /// Always `None`.
    pub fn trace_id(&self) -> Option<String> {
        None
    }

    /// Always `None`.
    pub fn child(&self, _name: &'static str) -> Option<ChildSpan> {
        None
    }

    /// Does nothing.
    pub fn end(&self, _status: u16, _request_id: &str, _duels: &Duels) {}
}
