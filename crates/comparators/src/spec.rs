//! Policies by name: those that the service serves, and the comparators.

use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, InvalidPolicy, PolicySpec, Setup};
use serde_json::Value;

use crate::Comparator;

#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// One that the service serves.
    Served(PolicySpec),
    /// One for simulations only.
    Comparator(Comparator),
    /// One of the caller.
    Own(Own),
}

/// A policy of the caller, which the command line cannot name.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    pub kind: &'static str,
    /// The policy before its first observation.
    pub start: fn(Setup) -> Box<dyn Bandit>,
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Spec {
    /// A policy from `KIND` or `KIND:name=value,name=value`.
    pub fn from_text(text: &str) -> Result<Self, InvalidPolicy> {
        Self::from_text_with(text, &[])
    }

    /// [`Spec::from_text`], with values for parameters that the text leaves out. Fallbacks for
    /// parameters that the kind does not have are ignored.
    pub fn from_text_with(text: &str, fallbacks: &[(&str, Value)]) -> Result<Self, InvalidPolicy> {
        let kind = text.split(':').next().unwrap_or_default().trim();
        if Comparator::KINDS.contains(&kind) {
            return Comparator::from_text(text, fallbacks).map(Self::Comparator);
        }
        PolicySpec::from_text_with(text, fallbacks).map(Self::Served).map_err(|error| {
            match error.parameter.as_str() {
                "kind" => InvalidPolicy::new(
                    "kind",
                    format!("{}, {}", error.detail, Comparator::KINDS.join(", ")),
                ),
                _ => error,
            }
        })
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Served(spec) => spec.kind(),
            Self::Comparator(spec) => spec.kind(),
            Self::Own(own) => own.kind,
        }
    }

    /// Check the ranges of the parameters for `rankers` rankers.
    pub fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        match self {
            Self::Served(spec) => spec.validate(rankers),
            Self::Comparator(spec) => spec.validate(rankers),
            Self::Own(_) => Ok(()),
        }
    }

    /// The policy before its first observation. Call [`Spec::validate`] first.
    pub fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        match self {
            Self::Served(spec) => Box::new(Run::of(spec.start(setup))),
            Self::Comparator(spec) => spec.start(setup),
            Self::Own(own) => (own.start)(setup),
        }
    }

    /// The served policy; `None` for others.
    pub fn served(&self) -> Option<&PolicySpec> {
        match self {
            Self::Served(spec) => Some(spec),
            Self::Comparator(_) | Self::Own(_) => None,
        }
    }
}
