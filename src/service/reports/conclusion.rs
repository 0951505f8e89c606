//! How an experiment ended.

use serde::Serialize;
use utoipa::ToSchema;

/// How an experiment was concluded.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Conclusion {
    pub winner: Option<String>,
    /// Whether the service concluded it by itself.
    pub automatic: bool,
    pub reason: Option<String>,
}
