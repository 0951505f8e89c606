//! ECW-RMED (Komiyama, Honda, Nakagawa, "Copeland Dueling Bandit Problem: Regret Lower Bound,
//! Optimal Algorithm, and Computationally Efficient Algorithm", ICML 2016, Algorithm 1). Step
//! numbers are those of `lab/notes/comparators.md` §7, which also says where the paper's line 15 and
//! its box are defective.
//!
//! Steps 1 and 2 select, steps 3 and 4 fold. Draws and orders are those of [`super::rmed`]:
//!
//! - With nothing in flight, the list is processed in a fixed order; otherwise in random order.
//! - A page without a click is not a draw; a tie is one.
//! - A duel of step 1 has the ticket `FORCED` and does not change the lists. Neither does a duel
//!   whose pair is not in the list.

pub mod exploration;
mod state;

use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::parameters::require;
use dueling_bandits::{Bandit, InvalidPolicy, Setup};

use state::State;

/// Largest number of rankers. The forced exploration takes some 11 duels a pair in 10⁵ steps, and a
/// step costs more than K² operations.
const MOST_RANKERS: usize = 32;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EcwRmed {
    /// Every pair is compared `alpha sqrt(ln t)` times.
    pub alpha: f64,
    /// Pairs closer to 1/2 than `beta / ln ln t` are compared again.
    pub beta: f64,
    /// Whether the feasible set has the box that the paper prints.
    pub literal: bool,
}

impl Default for EcwRmed {
    fn default() -> Self {
        Self { alpha: 3.0, beta: 0.01, literal: false }
    }
}

impl Parameters for EcwRmed {
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        let (alpha, beta) = (self.alpha, self.beta);
        require(alpha > 0.0 && alpha <= 100.0, "alpha", alpha, "above 0 and at most 100")?;
        require((0.0..0.5).contains(&beta), "beta", beta, "from 0 to below 0.5")?;
        if rankers > MOST_RANKERS {
            return Err(InvalidPolicy::new(
                "kind",
                format!(
                    "ECW-RMED explores every pair and allows at most {MOST_RANKERS} rankers; this \
                     experiment has {rankers}. `d-ts-plus` serves the same purpose with more rankers"
                ),
            ));
        }
        Ok(())
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        Box::new(State::new(setup.rankers, self.clone()))
    }
}
