//! The parameters that PCOMP, SCOMP and SCOMP2 share.

use crate::parameters::{InvalidPolicy, Parameter, Values, require};
use crate::policies::comp::evidence::{Elimination, Estimates, Rule};

/// Largest horizon, in comparisons: counts of half wins have 32 bits, and one batch may spend the
/// whole horizon on one pair.
pub const MAX_HORIZON: u64 = 2_000_000_000;

/// Why rankers cannot be added or retired.
pub(super) const FIXED_RANKERS: &str =
    "it commits to batches of pairs, and divides its horizon, for the initial rankers";

pub(super) const HORIZON: Parameter = Parameter {
    name: "horizon",
    values: Values::Integer,
    meaning: "T: the number of comparisons after which the policy stops exploring and shows its \
              champion alone; from the number of rankers to 2 000 000 000.",
    default: None,
};
pub(super) const BATCHES: Parameter = Parameter {
    name: "batches",
    values: Values::Integer,
    meaning: "B: the number of rounds into which the horizon is divided, from 1 to the horizon; \
              more rounds give less regret.",
    default: Some("the logarithm of the horizon to base 2, rounded down"),
};
pub(super) const ELIMINATION: Parameter = Parameter {
    name: "elimination",
    values: Values::OneOf(&["kl", "kl-published", "hoeffding"]),
    meaning: "When a ranker is clearly beaten: `kl` (comparisons times divergence exceed \
              ln(T K^2)), `kl-published` (they exceed ln(K^2), as the paper's figures seem to have \
              it; now and then it removes the best ranker) or `hoeffding` (the paper's theory).",
    default: Some("kl"),
};
pub(super) const ESTIMATES: Parameter = Parameter {
    name: "estimates",
    values: Values::OneOf(&["all", "fresh"]),
    meaning: "The comparisons that count as evidence: `all` comparisons of a pair, or `fresh`: \
              only those of the current round.",
    default: Some("`fresh` with `elimination=hoeffding`, otherwise `all`"),
};
pub(super) const SEED_EXPONENT: Parameter = Parameter {
    name: "seed_exponent",
    values: Values::Number,
    meaning: "e: each ranker is in the seed set with probability K^-e; from 0 to 1. The paper has \
              1/2, and 2/3 in a theorem.",
    default: Some("0.5"),
};

pub(super) fn default_seed_exponent() -> f64 {
    0.5
}

/// Declares the parameters of a policy: those that all three have, and `seed_exponent` if it has a
/// seed set.
macro_rules! batch_parameters {
    ($(#[$doc:meta])* $name:ident $(, $seed_exponent:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// `T`, in comparisons.
            pub horizon: u64,
            /// `B`; if absent, the logarithm of the horizon to base 2, rounded down.
            #[serde(default)]
            pub batches: Option<u32>,
            /// When a ranker is clearly beaten.
            #[serde(default)]
            pub elimination: Elimination,
            /// The comparisons that count as evidence.
            #[serde(default)]
            pub estimates: Option<Estimates>,
            $(
                /// `e`: each ranker is a seed with probability `K^-e`.
                #[serde(default = "default_seed_exponent")]
                pub $seed_exponent: f64,
            )?
        }

        impl $name {
            /// The default parameters for a horizon.
            pub fn new(horizon: u64) -> Self {
                Self {
                    horizon,
                    batches: None,
                    elimination: Elimination::default(),
                    estimates: None,
                    $($seed_exponent: default_seed_exponent(),)?
                }
            }

            /// The parameters that all three have.
            fn shared(&self) -> BatchParameters {
                BatchParameters {
                    horizon: self.horizon,
                    batches: self.batches,
                    elimination: self.elimination,
                    estimates: self.estimates,
                }
            }
        }
    };
}
pub(super) use batch_parameters;

/// The shared parameters of one experiment, as given.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchParameters {
    pub(super) horizon: u64,
    pub(super) batches: Option<u32>,
    pub(super) elimination: Elimination,
    pub(super) estimates: Option<Estimates>,
}

impl BatchParameters {
    pub(super) fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        let least = rankers as u64;
        require(
            (least..=MAX_HORIZON).contains(&self.horizon),
            "horizon",
            self.horizon,
            &format!("from {least}, the number of rankers, to {MAX_HORIZON}"),
        )?;
        let batches = self.batches();
        require(
            batches >= 1 && u64::from(batches) <= self.horizon,
            "batches",
            batches,
            "at least 1 and at most the horizon",
        )
    }

    /// `B`.
    pub(super) fn batches(&self) -> u32 {
        self.batches.unwrap_or_else(|| self.horizon.max(2).ilog2())
    }

    /// `c_r = ⌊q^r⌋`; all of the horizon from round `B` on.
    pub(super) fn comparisons_per_pair(&self, round: u32) -> u64 {
        let batches = self.batches();
        if round >= batches {
            return self.horizon;
        }
        let power = libm::pow(self.horizon as f64, f64::from(round) / f64::from(batches));
        // a rounding error must not move a whole number below itself
        libm::floor(power * (1.0 + 1e-12)) as u64
    }

    pub(super) fn rule(&self, rankers: usize) -> Rule {
        Rule::new(self.elimination, self.horizon, rankers, self.batches())
    }

    pub(super) fn estimates(&self) -> Estimates {
        self.estimates.unwrap_or(match self.elimination {
            Elimination::Hoeffding => Estimates::Fresh,
            Elimination::Kl | Elimination::KlPublished => Estimates::All,
        })
    }
}

pub(super) fn validate_seed_exponent(exponent: f64) -> Result<(), InvalidPolicy> {
    require((0.0..=1.0).contains(&exponent), "seed_exponent", exponent, "a number from 0 to 1")
}
