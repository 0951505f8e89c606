//! MergeRUCB (Zoghi, Whiteson, de Rijke, "MergeRUCB: A Method for Large-Scale Online Ranker
//! Evaluation", WSDM 2015). Step numbers are those of `lab/notes/comparators.md` §5.
//!
//! Rankers are compared within small batches of rankers (not batches of comparisons). Losers are
//! removed for good, and batches that become small are merged. Each selection draws a batch at
//! random, so that concurrent requests get different pairs.

mod ranker_batches;
mod tournament;

use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::parameters::require;
use dueling_bandits::{Bandit, InvalidPolicy, Setup};
use tournament::{Rules, Tournament};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeRucb {
    /// `p`: the number of rankers in a batch at the start.
    pub batch_size: usize,
    /// Width of the confidence bounds.
    pub alpha: f64,
    /// Probability of a wrong answer.
    pub delta: f64,
    /// `C` of `ln(t + C)`; if absent, computed from `alpha` and `delta`.
    pub constant: Option<f64>,
}

impl Default for MergeRucb {
    fn default() -> Self {
        Self { batch_size: 4, alpha: 1.01, delta: 0.01, constant: None }
    }
}

impl MergeRucb {
    /// `C(δ) = ⌈((4α-1) K² / ((2α-1) δ))^(1/(2α-1))⌉`.
    fn constant(&self, rankers: usize) -> f64 {
        self.constant.unwrap_or_else(|| {
            let slack = 2.0 * self.alpha - 1.0;
            let square = (rankers * rankers) as f64;
            libm::pow((4.0 * self.alpha - 1.0) * square / (slack * self.delta), 1.0 / slack).ceil()
        })
    }
}

impl Parameters for MergeRucb {
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        let (size, alpha) = (self.batch_size, self.alpha);
        require((2..=64).contains(&size), "batch_size", size, "from 2 to 64")?;
        require(alpha > 0.0 && alpha.is_finite(), "alpha", alpha, "a finite number above 0")?;
        require(self.delta > 0.0 && self.delta < 1.0, "delta", self.delta, "between 0 and 1")?;
        if self.constant.is_none() {
            require(alpha > 0.5, "alpha", alpha, "above 0.5 unless `constant` is given")?;
            let wanted = "larger: the constant computed from it is too large for a number";
            require(self.constant(rankers).is_finite(), "alpha", alpha, wanted)?;
        }
        let constant = self.constant(rankers);
        let wanted = "a finite number of at least 1";
        require(constant >= 1.0 && constant.is_finite(), "constant", constant, wanted)
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        let &Self { batch_size, alpha, .. } = self;
        let constant = self.constant(setup.rankers);
        Box::new(Tournament::new(setup, Rules { batch_size, alpha, constant }))
    }
}
