//! RMED1, RMED2 and RMED2FH, Relative Minimum Empirical Divergence (Komiyama, Honda, Kashima,
//! Nakagawa, "Regret Lower Bound and Optimal Algorithm in Dueling Bandit Problem", COLT 2015,
//! Algorithms 1-3). Step numbers are those of `algorithms-comparators.md` §6, which also says where
//! the paper's formula (6) has the wrong sign.
//!
//! Steps 1-3 select, steps 4-6 fold. Where the paper is silent:
//!
//! - With nothing in flight, lists and queues are processed in ascending order, as in a simulation.
//!   Otherwise the order is random, so that concurrent requests get different pairs.
//! - A page without a click is not a draw: it changes neither a list nor a queue. A tie is a draw
//!   under every tie rule.
//! - A duel that RMED2 forces (step 2) has the ticket `FORCED`. A duel of the initial phase has the
//!   ticket `INITIAL`. After the initial phase, neither kind changes the lists.

mod queue;
mod state;

use crate::Policy;
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use state::{State, Version, log_log};

/// The largest `L`. It limits the `L K²/2` duels of the initial phase.
const MOST_INITIAL_DRAWS: f64 = 1000.0;

const ALPHA: Parameter = Parameter {
    name: "alpha",
    values: Values::Number,
    meaning: "Least exploration: every pair is compared `alpha ln ln t` times; above 0, at most \
              100.",
    default: Some("3"),
};

const DEFAULT_ALPHA: f64 = 3.0;

fn default_alpha() -> f64 {
    DEFAULT_ALPHA
}

fn require_alpha(alpha: f64) -> Result<(), InvalidPolicy> {
    require(alpha > 0.0 && alpha <= 100.0, "alpha", alpha, "above 0 and at most 100")
}

/// RMED1 has no parameters.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Rmed1 {}

/// Parameters of RMED2.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct Rmed2 {
    /// Every pair is compared `alpha ln ln t` times.
    pub alpha: f64,
}

impl Default for Rmed2 {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA }
    }
}

/// Parameters of RMED2FH.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Rmed2Fh {
    /// `T`, in steps.
    pub horizon: u64,
    /// Every pair is first compared `alpha ln ln T` times.
    #[cfg_attr(feature = "serde", serde(default = "default_alpha"))]
    pub alpha: f64,
}

const SOURCE: &str = "Komiyama, Honda, Kashima & Nakagawa, Regret Lower Bound and Optimal \
                      Algorithm in Dueling Bandit Problem, COLT 2015";

impl PolicyParameters for Rmed1 {
    const DESCRIPTION: Description = Description {
        summary: "Relative minimum empirical divergence: compares rankers that may still be the \
                  Condorcet winner with the likeliest one.",
        source: SOURCE,
        assumes: "a Condorcet winner",
        parameters: &[],
        fixed_rankers: Some("its rounds go through the initial rankers"),
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        Ok(())
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(State::new(setup.rankers, Version::One))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        State::restore(setup, format, state, Version::One)
    }
}

impl PolicyParameters for Rmed2 {
    const DESCRIPTION: Description = Description {
        summary: "RMED that compares each ranker with the opponent that can rule it out at the \
                  lowest regret; this opponent is not always the likeliest winner.",
        source: SOURCE,
        assumes: "a Condorcet winner, and no pair that always ties",
        parameters: &[ALPHA],
        fixed_rankers: Some("its rounds go through the initial rankers"),
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(State::new(setup.rankers, Version::Two { alpha: self.alpha }))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        State::restore(setup, format, state, Version::Two { alpha: self.alpha })
    }
}

impl Rmed2Fh {
    /// The default parameters for a horizon.
    pub fn new(horizon: u64) -> Self {
        Self { horizon, alpha: DEFAULT_ALPHA }
    }

    fn version(&self) -> Version {
        Version::FixedHorizon {
            log_log: log_log(self.horizon as f64),
            draws: self.initial_draws() as u16,
        }
    }

    /// `L = ⌈α ln ln T⌉`.
    fn initial_draws(&self) -> f64 {
        (self.alpha * log_log(self.horizon as f64)).ceil().max(1.0)
    }
}

impl PolicyParameters for Rmed2Fh {
    const DESCRIPTION: Description = Description {
        summary: "RMED2 for a known number of steps: explores every pair at the start, and then \
                  keeps the opponents that it found.",
        source: SOURCE,
        assumes: "a Condorcet winner and a known horizon",
        parameters: &[
            Parameter {
                name: "horizon",
                values: Values::Integer,
                meaning: "Number of steps, `T`; at least 3.",
                default: None,
            },
            ALPHA,
        ],
        fixed_rankers: Some("its rounds go through the initial rankers"),
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require(self.horizon >= 3, "horizon", self.horizon, "at least 3 steps")?;
        require_alpha(self.alpha)?;
        let draws = self.initial_draws();
        require(draws <= MOST_INITIAL_DRAWS, "alpha", self.alpha, "smaller for this horizon")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(State::new(setup.rankers, self.version()))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        State::restore(setup, format, state, self.version())
    }
}
