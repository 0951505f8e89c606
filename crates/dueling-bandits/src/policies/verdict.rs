//! D-TS-Verdict: double Thompson sampling that proves its winner.
//!
//! D-TS+ finds the best ranker soon and shows it alone nearly all the time. It never collects the
//! evidence that would prove it. This policy spends its pages on the cheapest proof that the
//! present leader is a Copeland winner. While such a proof takes too long, D-TS+ selects duels,
//! too. Once the stopping rule of [`certificate`](crate::evidence::certificate) is satisfied, this
//! policy shows the winner alone, and explores on a small share of pages.
//!
//! The evidence comes from a [`Run`](crate::run::Run). Without one, the policy explores for ever.
//! [`plan`](crate::evidence::plan) finds the proof, and [`policy`] spends the duels.
//! `verdict-policy.md` in the folder of this crate explains the policy, `docs/verdict-rule.md` the
//! stopping rule.

mod policy;

use crate::Policy;
use crate::evidence::Target;
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::alpha::{ALPHA, DEFAULT_ALPHA, require_alpha};
use crate::policies::bounds::Bounds;
use crate::policies::verdict::policy::Deciding;

/// Parameters of D-TS-Verdict.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DoubleThompsonVerdict {
    /// Width of the confidence bounds of D-TS+, with which the policy explores; above 0.5.
    pub alpha: f64,
    /// Confidence of the verdict, in [0.5, 0.9999].
    pub confidence: f64,
    /// Margin of the verdict, in [0, 0.2].
    pub margin: f64,
}

impl Default for DoubleThompsonVerdict {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA, confidence: 0.95, margin: 0.01 }
    }
}

impl DoubleThompsonVerdict {
    fn target(&self) -> Target {
        Target { confidence: self.confidence, margin: self.margin }
    }
}

impl PolicyParameters for DoubleThompsonVerdict {
    const DESCRIPTION: Description = Description {
        summary: "Double Thompson sampling that proves its winner. The default: less regret than \
                  D-TS+ where the proof takes a few thousand duels, more where it takes tens of \
                  thousands.",
        source: "D-TS+ of Wu & Liu, NIPS 2016, with the stopping rule of docs/verdict-rule.md",
        assumes: "no two of the best rankers are exactly even, or a margin above 0",
        parameters: &[
            ALPHA,
            Parameter {
                name: "confidence",
                values: Values::Number,
                meaning: "Confidence of the verdict after which the winner is shown alone; 0.5 to \
                          0.9999. In an experiment it follows `conclude_at`.",
                default: Some("0.95"),
            },
            Parameter {
                name: "margin",
                values: Values::Number,
                meaning: "Pairs within this margin of 1/2 may count for either ranker; 0 to 0.2. \
                          In an experiment it follows `conclude_at`.",
                default: Some("0.01"),
            },
        ],
        fixed_rankers: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)?;
        let Self { confidence, margin, .. } = *self;
        require((0.5..=0.9999).contains(&confidence), "confidence", confidence, "0.5 to 0.9999")?;
        require((0.0..=0.2).contains(&margin), "margin", margin, "0 to 0.2")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Deciding::new(Bounds::new(setup.rankers, self.alpha), self.target()))
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        let policy = Deciding::restore(setup, state, self.alpha, self.target())?;
        Some(Box::new(policy))
    }
}
