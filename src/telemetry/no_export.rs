//! Spans in a program that was built without the feature `otel`: there are none.

use super::trace::{Duels, Parent};

/// Nothing.
pub struct Export;

impl Export {
    /// Say so where the environment asks for an export.
    pub fn start() -> Result<Self, String> {
        let asked = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
            .into_iter()
            .find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        if let Some(name) = asked {
            tracing::warn!(
                "{name} is set, and this program exports no spans: it was built without the feature `otel`"
            );
        }
        Ok(Self)
    }

    /// Nothing.
    pub fn stop(self) {}
}

/// Nothing.
pub struct RequestSpan;

/// Nothing.
pub struct ChildSpan;

impl RequestSpan {
    /// Nothing.
    pub fn start(_method: &'static str, _route: &str, _parent: Option<Parent>) -> Self {
        Self
    }

    /// None.
    pub fn trace_id(&self) -> Option<String> {
        None
    }

    /// None.
    pub fn child(&self, _name: &'static str) -> Option<ChildSpan> {
        None
    }

    /// Nothing.
    pub fn end(&self, _status: u16, _request_id: &str, _duels: &Duels) {}
}
