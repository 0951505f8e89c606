//! CW-RMED and ECW-RMED (Komiyama, Honda, Nakagawa, "Copeland Dueling Bandit Problem: Regret Lower
//! Bound, Optimal Algorithm, and Computationally Efficient Algorithm", ICML 2016, Algorithm 1).
//! Step numbers are those of `algorithms-comparators.md` §7, which also says where the paper's line
//! 15 and its box are defective.
//!
//! Steps 1 and 2 choose, steps 3 and 4 fold. As in [`super::rmed`]: with nothing in flight the list
//! is worked off in a fixed order, otherwise at random; a page without a click is no draw, a tie is
//! one; a duel of step 1 comes back with the ticket `FORCED` and leaves the lists alone, and so
//! does one whose pair is not in the list.

mod exploration;
mod state;

use crate::Policy;
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
pub use state::Evaluate;
use state::{Optimum, Rules, State};

/// The forced exploration is some 11 duels a pair in 10⁵ steps, and a step costs more than K²
/// operations.
const MOST_RANKERS: usize = 32;

/// Parameters of CW-RMED.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct CwRmed {
    /// Every pair is compared `alpha sqrt(ln t)` times.
    pub alpha: f64,
    /// Pairs closer to 1/2 than `beta / ln ln t` are compared again.
    pub beta: f64,
    /// Whether the box of the feasible set is read as printed.
    pub literal: bool,
    /// When the next list is decided.
    pub evaluate: Evaluate,
}

impl Default for CwRmed {
    fn default() -> Self {
        Self { alpha: 3.0, beta: 0.01, literal: false, evaluate: Evaluate::default() }
    }
}

/// Parameters of ECW-RMED.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct EcwRmed {
    /// Every pair is compared `alpha sqrt(ln t)` times.
    pub alpha: f64,
    /// Pairs closer to 1/2 than `beta / ln ln t` are compared again.
    pub beta: f64,
    /// Whether the box of the feasible set is read as printed.
    pub literal: bool,
    /// When the next list is decided.
    pub evaluate: Evaluate,
}

impl Default for EcwRmed {
    fn default() -> Self {
        Self { alpha: 3.0, beta: 0.01, literal: false, evaluate: Evaluate::default() }
    }
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        values: Values::Number,
        meaning: "Least exploration: every pair is compared `alpha sqrt(ln t)` times; above 0, at most 100.",
        default: Some("3"),
    },
    Parameter {
        name: "beta",
        values: Values::Number,
        meaning: "A pair closer to 1/2 than `beta / ln ln t` is compared again; from 0 to below 0.5.",
        default: Some("0.01"),
    },
    Parameter {
        name: "literal",
        values: Values::Boolean,
        meaning: "`true`: the evidence of a pair is not cut off at what is needed, as the paper's box has it, which \
                  explores more than it has to.",
        default: Some("false"),
    },
    Parameter {
        name: "evaluate",
        values: Values::OneOf(&["draw", "loop"]),
        meaning: "`draw`: decide what to draw next after every draw, as published; `loop`: when the list is worked \
                  off, which takes less time.",
        default: Some("draw"),
    },
];

const SOURCE: &str = "Komiyama, Honda & Nakagawa, Copeland Dueling Bandit Problem: Regret Lower Bound, Optimal \
                      Algorithm, and Computationally Efficient Algorithm, ICML 2016, Algorithm 1";

fn validate(alpha: f64, beta: f64, rankers: usize) -> Result<(), InvalidPolicy> {
    require(alpha > 0.0 && alpha <= 100.0, "alpha", alpha, "above 0 and at most 100")?;
    require((0.0..0.5).contains(&beta), "beta", beta, "from 0 to below 0.5")?;
    if rankers > MOST_RANKERS {
        return Err(InvalidPolicy::new(
            "kind",
            format!(
                "CW-RMED and ECW-RMED explore every pair and take at most {MOST_RANKERS} rankers; there are \
                 {rankers}. `d-ts-plus` serves the same purpose with more"
            ),
        ));
    }
    Ok(())
}

impl PolicyParameters for CwRmed {
    const DESCRIPTION: Description = Description {
        summary: "Explores what a linear program says is the cheapest evidence for a Copeland winner; optimal in the \
                  long run, slow, and for few rankers.",
        source: SOURCE,
        assumes: "no pair of equal rankers",
        parameters: PARAMETERS,
        fixed_rankers: Some("it weighs its evidence for the rankers that it began with"),
        not_served: Some("it solves linear programs at most steps: use `ecw-rmed` or `d-ts-plus`"),
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        validate(self.alpha, self.beta, rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(State::new(setup.rankers, self.rules()))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        State::restore(setup, format, state, self.rules())
    }
}

impl PolicyParameters for EcwRmed {
    const DESCRIPTION: Description = Description {
        summary: "Explores a sufficient set of evidence for a Copeland winner, found in closed form; for few rankers.",
        source: SOURCE,
        assumes: "no pair of equal rankers",
        parameters: PARAMETERS,
        fixed_rankers: Some("it weighs its evidence for the rankers that it began with"),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        validate(self.alpha, self.beta, rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(State::new(setup.rankers, self.rules()))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        State::restore(setup, format, state, self.rules())
    }
}

impl CwRmed {
    fn rules(&self) -> Rules {
        let &Self { alpha, beta, literal, evaluate } = self;
        Rules { optimum: Optimum::LinearProgram, alpha, beta, literal, evaluate }
    }
}

impl EcwRmed {
    fn rules(&self) -> Rules {
        let &Self { alpha, beta, literal, evaluate } = self;
        Rules { optimum: Optimum::ClosedForm, alpha, beta, literal, evaluate }
    }
}
