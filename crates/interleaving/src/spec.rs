//! Which method, with which parameters: from JSON or a command line.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::lists::DepthPolicy;
use super::optimized::{MAX_DEPTH, MAX_LISTS, Optimized};
use super::probabilistic::Probabilistic;
use super::team_draft::Shared;

/// A method and what it is applied to; in JSON `{"kind": "…", …parameters}`, every parameter
/// optional.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spec {
    /// How two lists become one.
    #[serde(flatten)]
    pub method: Method,
    /// What happens where one list is longer.
    pub depth_policy: DepthPolicy,
}

/// A method of interleaving with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Method {
    /// Sides pick in turn; a coin says who begins each round.
    TeamDraft(TeamDraft),
    /// Beginnings of both lists, as even as can be.
    Balanced(Balanced),
    /// Documents drawn by rank, credit by posterior.
    Probabilistic(Probabilistic),
    /// The fairest and most telling distribution over lists, by a linear program.
    Optimized(Optimized),
}

/// Parameters of team draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TeamDraft {
    /// What becomes of documents that both sides want.
    pub shared: Shared,
}

/// Balanced interleaving has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balanced {}

impl Default for Spec {
    fn default() -> Self {
        Self {
            method: Method::TeamDraft(TeamDraft::default()),
            depth_policy: DepthPolicy::default(),
        }
    }
}

/// A method that cannot be as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidSpec {
    /// The parameter; empty when no single one is to blame.
    pub parameter: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl InvalidSpec {
    fn new(parameter: &str, detail: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), detail: detail.into() }
    }
}

impl Method {
    /// Every kind's name and its parameters.
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

    /// A spec from its JSON object, checked.
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

    /// A spec as it is written on a command line: `KIND` or `KIND:name=value,name=value`.
    pub fn from_text(text: &str) -> Result<Self, InvalidSpec> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut object = Map::from_iter([("kind".to_string(), Value::from(kind.trim()))]);
        for part in rest.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                InvalidSpec::new("", format!("`{part}` in `{text}` is not of the form name=value"))
            })?;
            let value = value.trim();
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
            if object.insert(name.trim().into(), value).is_some() {
                return Err(InvalidSpec::new(
                    name.trim(),
                    format!("`{name}` is given twice in `{text}`"),
                ));
            }
        }
        Self::from_json(object)
    }

    /// Check ranges.
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

/// The parameters of a kind.
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
