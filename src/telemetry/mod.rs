//! What ops can see of a running server: metrics, logs, and what belongs together in them.

#[cfg(feature = "otel")]
pub mod export;
#[cfg(not(feature = "otel"))]
#[path = "no_export.rs"]
pub mod export;
pub mod logging;
pub mod metrics;
pub mod trace;
