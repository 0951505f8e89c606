//! The declaration of a kind of policy: its parameters, its description, and how it starts.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::Policy;

/// The inputs that every policy needs to start, in addition to its own parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Number of rankers, `K`.
    pub rankers: usize,
    /// Seed of all random numbers that are drawn while observing.
    pub seed: u64,
}

/// Parameters that no policy can be built from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidPolicy {
    /// Name of the wrong parameter; `kind` for the kind itself; empty if the error is not in a
    /// single parameter.
    pub parameter: String,
    /// The problem, and the allowed values.
    pub detail: String,
}

impl InvalidPolicy {
    /// An error about `parameter`.
    pub fn new(parameter: &str, detail: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), detail: detail.into() }
    }
}

/// The description of a kind of policy, for a user who chooses one.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Summary of the policy in one or two sentences.
    pub summary: &'static str,
    /// Paper and algorithm.
    pub source: &'static str,
    /// The assumption of its guarantee, such as "a Condorcet winner"; "nothing" if there is none.
    pub assumes: &'static str,
    /// Its parameters, in the order of its documentation.
    pub parameters: &'static [Parameter],
    /// The reason why rankers cannot be added or retired; `None` exactly if
    /// [`Policy::enlist`] works.
    pub fixed_rankers: Option<&'static str>,
}

/// One parameter of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in JSON and on the command line.
    pub name: &'static str,
    /// The JSON values it takes.
    pub values: Values,
    /// Meaning, range and unit.
    pub meaning: &'static str,
    /// Its default as text: a JSON value or one of its names. For a default that depends on other
    /// parameters, a phrase. `None` for a required parameter.
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

/// The parameters of one kind of policy.
pub trait PolicyParameters: Serialize + DeserializeOwned {
    /// The description of the kind for users.
    const DESCRIPTION: Description;

    /// Version of the layout of saved states. A change of what a policy learns from the same
    /// outcomes needs a new one too, so that the log is folded again.
    const FORMAT: u32 = 1;

    /// Check the ranges of the parameters for `rankers` rankers.
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy>;

    /// The policy before its first observation. Call [`PolicyParameters::validate`] first.
    fn start(&self, setup: Setup) -> Box<dyn Policy>;

    /// The policy from the bytes that [`Policy::save`] wrote in layout
    /// [`FORMAT`](PolicyParameters::FORMAT); `None` if they are no state of it.
    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>>;
}

/// An error that names the parameter and its range, unless `holds`.
pub fn require(
    holds: bool,
    parameter: &str,
    value: impl std::fmt::Debug,
    wanted: &str,
) -> Result<(), InvalidPolicy> {
    if holds {
        Ok(())
    } else {
        Err(InvalidPolicy::new(
            parameter,
            format!("`{parameter}` is {value:?}; it must be {wanted}"),
        ))
    }
}

/// The parameters `P` of `kind` from their JSON object.
pub(crate) fn read_parameters<P: PolicyParameters>(
    kind: &str,
    parameters: Map<String, Value>,
) -> Result<P, InvalidPolicy> {
    let known = P::DESCRIPTION.parameters;
    if let Some(name) = parameters.keys().find(|name| known.iter().all(|p| p.name != **name)) {
        let takes = match known {
            [] => "it takes none".to_string(),
            _ => {
                format!("it takes: {}", known.iter().map(|p| p.name).collect::<Vec<_>>().join(", "))
            }
        };
        return Err(InvalidPolicy::new(
            name,
            format!("policy `{kind}` has no parameter `{name}`; {takes}"),
        ));
    }
    if let Some(missing) =
        known.iter().find(|p| p.default.is_none() && !parameters.contains_key(p.name))
    {
        return Err(InvalidPolicy::new(
            missing.name,
            format!("policy `{kind}` needs `{}`: {}", missing.name, missing.meaning),
        ));
    }
    serde_path_to_error::deserialize(Value::Object(parameters)).map_err(|error| {
        let name = error.path().to_string();
        InvalidPolicy::new(&name, format!("`{name}` of policy `{kind}`: {}", error.inner()))
    })
}
