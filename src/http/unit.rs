//! The `unit` of a request: an id of the user, session or device.

use super::problem::{ApiResult, Problem, ProblemKind};
use crate::service::units::unit_error;

/// Refuse an id that cannot be a unit.
pub(super) fn check_unit(unit: Option<&str>) -> ApiResult<()> {
    let Some(detail) = unit.and_then(unit_error) else { return Ok(()) };
    Err(Problem::new(ProblemKind::InvalidRequest, format!("Invalid request: {detail}."))
        .field("/unit", detail))
}
