//! The parameters that the explorations share.

use crate::parameters::{InvalidPolicy, Parameter, Values, require};
use crate::policies::explore::confidence::Radius;

/// Largest horizon, in steps: the counts of one pair are exact up to here.
pub const MAX_HORIZON: u64 = 2_000_000_000;

pub(super) const HORIZON: Parameter = Parameter {
    name: "horizon",
    values: Values::Integer,
    meaning: "T: the number of steps after which the best empirical ranker is shown alone, if none \
              was accepted earlier; from the number of rankers to 2 000 000 000. Without it, \
              exploration continues until a ranker is accepted.",
    default: Some("none"),
};
pub(super) const DELTA: Parameter = Parameter {
    name: "delta",
    values: Values::Number,
    meaning: "Probability of accepting a wrong ranker; above 0 and below 1.",
    default: Some("1 / `horizon`; 0.05 without a horizon"),
};

/// The horizon and the error probability of an exploration.
#[derive(Debug, Clone, Copy)]
pub struct ExplorationParameters {
    /// `T`.
    pub horizon: Option<u64>,
    /// `δ`.
    pub delta: Option<f64>,
}

impl ExplorationParameters {
    /// Check the ranges for `rankers` rankers.
    pub fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        if let Some(horizon) = self.horizon {
            let least = rankers as u64;
            let wanted = format!("from {least}, the number of rankers, to {MAX_HORIZON}");
            require((least..=MAX_HORIZON).contains(&horizon), "horizon", horizon, &wanted)?;
        }
        let delta = self.delta();
        require(delta > 0.0 && delta < 1.0, "delta", delta, "a probability above 0 and below 1")
    }

    /// `δ`.
    pub fn delta(&self) -> f64 {
        self.delta.unwrap_or(match self.horizon {
            Some(horizon) => 1.0 / horizon as f64,
            None => 0.05,
        })
    }

    /// SAVAGE's `c(t)` for this number of unknowns.
    pub fn radius(&self, unknowns: usize) -> Radius {
        match self.horizon {
            Some(horizon) => Radius::finite(unknowns, horizon, self.delta()),
            None => Radius::anytime(unknowns, self.delta()),
        }
    }
}
