//! Logs and spans of a running server.

pub mod duels;
#[cfg(feature = "otel")]
pub mod export;
#[cfg(not(feature = "otel"))]
#[path = "no_export.rs"]
pub mod export;
pub mod logging;

/// The target of the spans that are exported.
const EXPORTED: &str = "rankduel::spans";
