//! RMED1, RMED2 and RMED2FH, Relative Minimum Empirical Divergence (Komiyama, Honda, Kashima,
//! Nakagawa, "Regret Lower Bound and Optimal Algorithm in Dueling Bandit Problem", COLT 2015,
//! Algorithms 1-3). Step numbers are those of `lab/notes/comparators.md` §6, which also says where
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

use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::parameters::require;
use dueling_bandits::{Bandit, InvalidPolicy, Setup};
use state::{State, Version, log_log};

/// The largest `L`. It limits the `L K²/2` duels of the initial phase.
const MOST_INITIAL_DRAWS: f64 = 1000.0;

const DEFAULT_ALPHA: f64 = 3.0;

fn require_alpha(alpha: f64) -> Result<(), InvalidPolicy> {
    require(alpha > 0.0 && alpha <= 100.0, "alpha", alpha, "above 0 and at most 100")
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rmed1 {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rmed2 {
    /// Every pair is compared `alpha ln ln t` times.
    pub alpha: f64,
}

impl Default for Rmed2 {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rmed2Fh {
    /// `T`, in steps.
    pub horizon: u64,
    /// Every pair is first compared `alpha ln ln T` times.
    pub alpha: f64,
}

impl Default for Rmed2Fh {
    fn default() -> Self {
        Self { horizon: 0, alpha: DEFAULT_ALPHA }
    }
}

impl Parameters for Rmed1 {
    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        Box::new(State::new(setup.rankers, Version::One))
    }
}

impl Parameters for Rmed2 {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        Box::new(State::new(setup.rankers, Version::Two { alpha: self.alpha }))
    }
}

impl Rmed2Fh {
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

impl Parameters for Rmed2Fh {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require(self.horizon >= 3, "horizon", self.horizon, "at least 3 steps")?;
        require_alpha(self.alpha)?;
        let draws = self.initial_draws();
        require(draws <= MOST_INITIAL_DRAWS, "alpha", self.alpha, "smaller for this horizon")
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        Box::new(State::new(setup.rankers, self.version()))
    }
}
