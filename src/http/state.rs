//! The state that every handler can extract.

use std::sync::Arc;

use super::readiness::Readiness;
use crate::service::Service;
use crate::telemetry::metrics::Metrics;

/// The state of the API. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The use cases.
    pub service: Arc<Service>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Whether the server accepts traffic.
    pub readiness: Arc<Readiness>,
}
