//! The choice of a method and its parameters, from JSON or a command line. This file lists all
//! methods; the methods do not import it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lists::DepthPolicy;
use crate::methods::balanced::Balanced;
use crate::methods::optimized::{MAX_DEPTH, MAX_LISTS, Optimized};
use crate::methods::probabilistic::Probabilistic;
use crate::methods::team_draft::TeamDraft;
use crate::text::{InvalidText, KindText};

/// A method and the depth policy of its lists. In JSON: `{"kind": "…", …parameters}`, where every
/// parameter is optional.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spec {
    /// The method and its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// How rankings of different lengths are treated.
    pub depth_policy: DepthPolicy,
}

/// An interleaving method with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Method {
    /// The sides pick in turn; a coin decides which side begins each round.
    TeamDraft(TeamDraft),
    /// Beginnings of both lists, as equal in length as possible.
    Balanced(Balanced),
    /// Documents drawn by rank; credit by posterior probability.
    Probabilistic(Probabilistic),
    /// An unbiased and most sensitive distribution over lists, from a linear program.
    Optimized(Optimized),
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            method: Method::TeamDraft(TeamDraft::default()),
            depth_policy: DepthPolicy::default(),
        }
    }
}

/// Why a spec was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidSpec {
    /// The invalid parameter; empty if the error is not about a single one.
    pub parameter: String,
    /// The problem, and the allowed values.
    pub detail: String,
}

impl InvalidSpec {
    fn new(parameter: &str, detail: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), detail: detail.into() }
    }
}

impl Method {
    /// The name of every kind, and its parameters.
    pub const KINDS: [(&'static str, &'static [&'static str]); 4] = [
        ("team-draft", &["shared"]),
        ("balanced", &[]),
        ("probabilistic", &["tau", "credit", "verdict"]),
        ("optimized", &["credit", "depth", "max_lists"]),
    ];

    /// The kind's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Method::TeamDraft(_) => "team-draft",
            Method::Balanced(_) => "balanced",
            Method::Probabilistic(_) => "probabilistic",
            Method::Optimized(_) => "optimized",
        }
    }
}

impl Spec {
    /// A spec with the default depth policy.
    pub fn of(method: Method) -> Self {
        Self { method, depth_policy: DepthPolicy::default() }
    }

    /// Reads and checks a spec from its JSON object.
    pub fn from_json(mut object: Map<String, Value>) -> Result<Self, InvalidSpec> {
        let depth_policy = match object.remove("depth_policy") {
            Some(value) => serde_json::from_value(value).map_err(|error| {
                InvalidSpec::new("depth_policy", format!("`depth_policy`: {error}"))
            })?,
            None => DepthPolicy::default(),
        };
        let kind = match object.remove("kind") {
            Some(Value::String(kind)) => kind,
            Some(other) => {
                return Err(InvalidSpec::new(
                    "kind",
                    format!("`kind` is {other}; it must be a string"),
                ));
            }
            None => {
                return Err(InvalidSpec::new(
                    "kind",
                    format!("`kind` is missing; choose one of: {}", kinds()),
                ));
            }
        };
        let Some((_, known)) = Method::KINDS.iter().find(|(known, _)| *known == kind) else {
            let detail =
                format!("there is no interleaving method `{kind}`; choose one of: {}", kinds());
            return Err(InvalidSpec::new("kind", detail));
        };
        if let Some(unknown) = object.keys().find(|name| !known.contains(&name.as_str())) {
            let takes: Vec<&str> = known.iter().copied().chain(["depth_policy"]).collect();
            let detail = format!(
                "method `{kind}` has no parameter `{unknown}`; it takes: {}",
                takes.join(", ")
            );
            return Err(InvalidSpec::new(unknown, detail));
        }
        let method = match kind.as_str() {
            "team-draft" => Method::TeamDraft(read(&kind, object)?),
            "balanced" => Method::Balanced(read(&kind, object)?),
            "probabilistic" => Method::Probabilistic(read(&kind, object)?),
            _ => Method::Optimized(read(&kind, object)?),
        };
        let spec = Self { method, depth_policy };
        spec.validate()?;
        Ok(spec)
    }

    /// Reads a spec from its command-line form: `KIND` or `KIND:name=value,name=value`.
    pub fn from_text(text: &str) -> Result<Self, InvalidSpec> {
        let KindText { kind, parameters } = KindText::parse(text)?;
        let json = |value: &str| {
            serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()))
        };
        let mut object: Map<String, Value> =
            parameters.into_iter().map(|(name, value)| (name.into(), json(value))).collect();
        object.insert("kind".into(), kind.into());
        Self::from_json(object)
    }

    /// Checks the ranges of the parameters.
    pub fn validate(&self) -> Result<(), InvalidSpec> {
        match self.method {
            Method::Probabilistic(Probabilistic { tau, .. }) if !(tau > 0.0 && tau <= 10.0) => {
                Err(InvalidSpec::new(
                    "tau",
                    format!("`tau` is {tau}; it must be above 0 and at most 10"),
                ))
            }
            Method::Optimized(Optimized { depth, .. }) if !(1..=MAX_DEPTH).contains(&depth) => {
                let detail =
                    format!("`depth` is {depth}; it must be a whole number from 1 to {MAX_DEPTH}");
                Err(InvalidSpec::new("depth", detail))
            }
            Method::Optimized(Optimized { max_lists, .. })
                if !(1..=MAX_LISTS).contains(&max_lists) =>
            {
                let detail = format!(
                    "`max_lists` is {max_lists}; it must be a whole number from 1 to {MAX_LISTS}"
                );
                Err(InvalidSpec::new("max_lists", detail))
            }
            _ => Ok(()),
        }
    }
}

impl From<InvalidText> for InvalidSpec {
    fn from(error: InvalidText) -> Self {
        let parameter = match &error {
            InvalidText::NotAParameter { .. } => "",
            InvalidText::Repeated { name, .. } => name,
        };
        Self::new(parameter, error.to_string())
    }
}

/// Reads the parameters of a kind.
fn read<T: DeserializeOwned>(kind: &str, parameters: Map<String, Value>) -> Result<T, InvalidSpec> {
    serde_path_to_error::deserialize(Value::Object(parameters)).map_err(|error| {
        let name = error.path().to_string();
        InvalidSpec::new(&name, format!("`{name}` of method `{kind}`: {}", error.inner()))
    })
}

fn kinds() -> String {
    Method::KINDS.map(|(kind, _)| kind).join(", ")
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Map::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
