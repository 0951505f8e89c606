//! What a policy kind says of itself and of its parameters: the contract between a kind and the
//! registry.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Policy;

/// What a policy needs to start, beside its own parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// `K`.
    pub rankers: usize,
    /// Seed of all that is drawn while folding.
    pub seed: u64,
}

/// A policy that cannot be built as asked: which parameter, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidPolicy {
    /// Name of the parameter, `kind` for the kind itself, empty when no single one is to blame.
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

/// What a user wants to know of a policy before choosing it.
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
    /// Why no ranker can be enlisted or retired while it runs; `None` where rankers may come and
    /// go.
    pub fixed_rankers: Option<&'static str>,
    /// Why a live service should not run it; `None` where it may.
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
    /// Its default as text; `None` for one that must be given.
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

/// The parameters of one kind of policy, and how that policy starts and resumes.
pub trait PolicyParameters: Serialize + DeserializeOwned {
    /// What a user reads about the kind.
    const DESCRIPTION: Description;

    /// Check ranges, for an experiment with `rankers` rankers.
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy>;

    /// The policy before its first observation. Parameters have been validated.
    fn start(&self, setup: Setup) -> Box<dyn Policy>;

    /// The policy as [`Policy::save`] left it in layout `format`; `None` when the bytes are not of
    /// a layout that this version reads. The caller then folds from the start.
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>>;
}

/// Refuse a value outside its range with a sentence that names it.
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
