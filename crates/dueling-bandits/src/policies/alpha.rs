//! The parameter `alpha` of the policies with [`Bounds`](crate::Bounds).

use crate::parameters::{InvalidPolicy, Parameter, Values, require};

/// The description of the parameter.
pub(super) const ALPHA: Parameter = Parameter {
    name: "alpha",
    values: Values::Number,
    meaning: "Width of the confidence bounds, `sqrt(alpha ln t / N)`; above 0.5. The default is that \
              of the papers' experiments; bounds on the expected regret require more than 1.",
    default: Some("0.51"),
};

pub(super) const DEFAULT_ALPHA: f64 = 0.51;

pub(super) fn require_alpha(alpha: f64) -> Result<(), InvalidPolicy> {
    require(alpha > 0.5 && alpha.is_finite(), "alpha", alpha, "a finite number above 0.5")
}
