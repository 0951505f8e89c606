//! What a kind of policy declares: its parameters, its description, and how it starts.

use crate::saved_state::Serializable;
use crate::{Policy, Tally};

/// What a policy needs to start, beside its own parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Number of rankers, `K`.
    pub rankers: usize,
    /// Seed of everything that is drawn at random while observing.
    pub seed: u64,
}

/// Parameters that no policy can be built from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidPolicy {
    /// Name of the wrong parameter, `kind` for the kind itself, empty where it is no single one.
    pub parameter: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl InvalidPolicy {
    /// An error about `parameter`.
    pub fn new(parameter: &str, detail: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), detail: detail.into() }
    }
}

/// What a user wants to know about a kind of policy before choosing it.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// One sentence: what it does.
    pub summary: &'static str,
    /// Paper and algorithm.
    pub source: &'static str,
    /// What must hold for its guarantee, as "a Condorcet winner"; "nothing" where it needs nothing.
    pub assumes: &'static str,
    /// Its parameters, in the order of its documentation.
    pub parameters: &'static [Parameter],
    /// Why rankers cannot be added or retired; `None` exactly where
    /// [`Policy::mutable_roster`] is `Some`.
    pub fixed_rankers: Option<&'static str>,
    /// Why it is unsuited to concurrent requests; `None` where it is suited.
    pub not_served: Option<&'static str>,
}

/// One parameter of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name in JSON and on the command line.
    pub name: &'static str,
    /// The JSON values it takes.
    pub values: Values,
    /// What it does, with range and unit.
    pub meaning: &'static str,
    /// Its default as text: a JSON value or one of its names, or, for a default that follows from
    /// other parameters, a phrase. `None` for a parameter that must be given.
    pub default: Option<&'static str>,
}

/// The JSON values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// A finite number.
    Number,
    /// A whole number, 0 or above.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One of these strings.
    OneOf(&'static [&'static str]),
}

/// Starts a policy of kind `P` from a tally.
pub type StartFromTally<P> = fn(&P, Setup, Tally) -> Box<dyn Policy>;

/// The parameters of one kind of policy.
pub trait PolicyParameters: Serializable {
    /// What a user reads about the kind.
    const DESCRIPTION: Description;

    /// Starts the policy from win counts; `None` where its state is more than counts.
    const FROM_TALLY: Option<StartFromTally<Self>> = None;

    /// Check the ranges of the parameters for `rankers` rankers.
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy>;

    /// The policy before its first observation. Call [`PolicyParameters::validate`] first.
    fn start(&self, setup: Setup) -> Box<dyn Policy>;

    /// The policy from the bytes that [`Policy::save`] wrote in layout `format`; `None` where this
    /// version cannot read them.
    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>>;
}

/// An error that names the parameter and its range, unless `holds`.
pub fn require(
    holds: bool,
    parameter: &str,
    value: impl std::fmt::Display,
    wanted: &str,
) -> Result<(), InvalidPolicy> {
    if holds {
        Ok(())
    } else {
        Err(InvalidPolicy::new(parameter, format!("`{parameter}` is {value}; it must be {wanted}")))
    }
}
