//! D-TS and D-TS+ (Wu & Liu, "Double Thompson Sampling for Dueling Bandits", NIPS 2016, Algorithm
//! 1).
//!
//! The policy draws two Thompson samples. The first picks a candidate among the optimistic Copeland
//! winners. The second picks the strongest challenger that has not certainly lost to the candidate.
//! `sampler` has the algorithm, and `first_candidate` its first phase, where the policies differ.

mod first_candidate;
mod sampler;

use crate::Policy;
use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::alpha::{ALPHA, DEFAULT_ALPHA, require_alpha};
use crate::policies::bounds::Bounds;

pub(crate) use sampler::{Sampler, Ties};

macro_rules! kind {
    ($(#[$doc:meta])* $parameters:ident, $ties:ident, summary: $summary:literal, source: $source:literal $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $parameters {
            /// Width of the confidence bounds; above 0.5.
            pub alpha: f64,
        }

        impl Default for $parameters {
            fn default() -> Self {
                Self { alpha: DEFAULT_ALPHA }
            }
        }

        impl PolicyParameters for $parameters {
            const DESCRIPTION: Description = Description {
                summary: $summary,
                source: $source,
                assumes: "no two rankers are exactly even",
                parameters: &[ALPHA],
                fixed_rankers: None,
            };

            fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
                require_alpha(self.alpha)
            }

            fn start(&self, setup: Setup) -> Box<dyn Policy> {
                let bounds = Bounds::new(setup.rankers, self.alpha);
                Box::new(Sampler::new(bounds, Ties::$ties))
            }

            fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
                Some(Box::new(Sampler::restore(setup, state, self.alpha, Ties::$ties)?))
            }
        }
    };
}

kind! {
    /// Parameters of D-TS.
    DoubleThompson,
    AtRandom,
    summary: "Double Thompson sampling: low regret with and without a Condorcet winner, and \
              little affected by late feedback.",
    source: "Wu & Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016, Algorithm 1",
}

kind! {
    /// Parameters of D-TS+.
    DoubleThompsonPlus,
    ByRegret,
    summary: "Double Thompson sampling that breaks ties for the first candidate by the \
              expected cost of exploration: better than D-TS where there are several Copeland \
              winners.",
    source: "Wu & Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016, D-TS+",
}
