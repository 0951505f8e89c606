//! D-TS-Verdict: double Thompson sampling that proves its winner.
//!
//! D-TS+ finds the best ranker soon and shows it alone nearly all the time. What it never does is
//! collect the evidence that would prove it. This policy spends the pages on which D-TS+ shows one
//! ranker twice, and a share of the others, on the cheapest proof that the present leader is a
//! Copeland winner. Once the stopping rule of [`certificate`](crate::evidence::certificate) is
//! satisfied, it shows the winner alone. Now and then it explores, and after a long time the winner
//! has to prove itself again, which corrects a wrong verdict.
//!
//! [`plan`](crate::evidence::plan) finds the proof, and [`policy`] spends the duels.
//! `docs/verdict-policy.md` and `docs/verdict-rule.md` of the repository explain both.

mod policy;

use crate::Policy;
use crate::evidence::Target;
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, StartFromTally, Values, require,
};
use crate::policies::alpha::{ALPHA, DEFAULT_ALPHA, require_alpha};
use crate::policies::verdict::policy::Deciding;

/// Parameters of D-TS-Verdict.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct DoubleThompsonVerdict {
    /// Width of the confidence bounds of the explorer; above 0.5.
    pub alpha: f64,
    /// Confidence of the verdict, in [0.5, 0.9999].
    pub confidence: f64,
    /// Margin of the verdict, in [0, 0.2].
    pub margin: f64,
    /// From least regret, 0, to the soonest verdict, 1.
    pub urgency: f64,
}

impl Default for DoubleThompsonVerdict {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA, confidence: 0.95, margin: 0.0, urgency: 0.75 }
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
                default: Some("0"),
            },
            Parameter {
                name: "urgency",
                values: Values::Number,
                meaning: "From the least regret (0) to the soonest verdict (1): the share of the \
                          explorer's duels that are spent on the proof instead.",
                default: Some("0.75"),
            },
        ],
        fixed_rankers: None,
    };

    const FROM_TALLY: Option<StartFromTally<Self>> =
        Some(|p, _, tally| Box::new(Deciding::from_tally(tally, p.alpha, p.target(), p.urgency)));

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)?;
        let Self { confidence, margin, urgency, .. } = *self;
        require((0.5..=0.9999).contains(&confidence), "confidence", confidence, "0.5 to 0.9999")?;
        require((0.0..=0.2).contains(&margin), "margin", margin, "0 to 0.2")?;
        require((0.0..=1.0).contains(&urgency), "urgency", urgency, "0 to 1")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Deciding::new(setup.rankers, self.alpha, self.target(), self.urgency))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        let policy =
            Deciding::restore(setup, format, state, self.alpha, self.target(), self.urgency)?;
        Some(Box::new(policy))
    }
}
