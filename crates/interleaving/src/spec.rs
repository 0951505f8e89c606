//! The choice of a method and its parameters, from JSON or a command line. This file lists all
//! methods; the methods do not import it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::click_weights::{ClickWeights, MAX_FEATURE};
use crate::credit::ScoreVerdict;
use crate::lists::DepthPolicy;
use crate::methods::balanced::{Balanced, BalancedCredit};
use crate::methods::optimized::{MAX_DEPTH, MAX_LISTS, Optimized};
use crate::methods::probabilistic::{PosteriorCredit, Probabilistic};
use crate::methods::team_draft::TeamDraft;
use crate::text::{InvalidText, KindText};

/// A method, the depth policy of its lists and the weights of clicks. In JSON: `{"kind": "…",
/// …parameters}`, where every parameter is optional.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spec {
    /// The method and its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// How rankings of different lengths are treated.
    pub depth_policy: DepthPolicy,
    /// Weights of clicks by their features; without it, all clicks weigh the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub click_weights: Option<ClickWeights>,
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
            click_weights: None,
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
        ("team-draft", &["shared", "verdict"]),
        ("balanced", &["credit", "verdict"]),
        ("probabilistic", &["tau", "credit", "verdict"]),
        ("optimized", &["credit", "depth", "max_lists", "verdict"]),
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
    /// This spec for a list whose first page has this many drafted documents: optimized
    /// interleaving optimizes and credits no positions below it, which would cost sensitivity
    /// above. All pages of a list need the same spec.
    pub fn for_first_page(mut self, drafted: usize) -> Self {
        if let Method::Optimized(optimized) = &mut self.method {
            optimized.depth =
                optimized.depth.min(u32::try_from(drafted.max(1)).unwrap_or(u32::MAX));
        }
        self
    }

    /// A spec with the default depth policy.
    pub fn of(method: Method) -> Self {
        Self { method, ..Self::default() }
    }

    /// Reads and checks a spec from its JSON object.
    pub fn from_json(mut object: Map<String, Value>) -> Result<Self, InvalidSpec> {
        let depth_policy =
            common(&mut object, "depth_policy")?.unwrap_or_else(DepthPolicy::default);
        let click_weights = common(&mut object, "click_weights")?;
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
            let takes: Vec<&str> = known.iter().copied().chain(COMMON).collect();
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
        let spec = Self { method, depth_policy, click_weights };
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

    /// Checks the ranges of the parameters, and that they fit each other.
    pub fn validate(&self) -> Result<(), InvalidSpec> {
        let refused = |parameter: &str, detail: String| Err(InvalidSpec::new(parameter, detail));
        match self.method {
            Method::Probabilistic(Probabilistic { tau, .. }) if !(tau > 0.0 && tau <= 10.0) => {
                return refused(
                    "tau",
                    format!("`tau` is {tau:?}; it must be above 0 and at most 10"),
                );
            }
            Method::Optimized(Optimized { depth, .. }) if !(1..=MAX_DEPTH).contains(&depth) => {
                let detail =
                    format!("`depth` is {depth}; it must be a whole number from 1 to {MAX_DEPTH}");
                return refused("depth", detail);
            }
            Method::Optimized(Optimized { max_lists, .. })
                if !(1..=MAX_LISTS).contains(&max_lists) =>
            {
                let detail = format!(
                    "`max_lists` is {max_lists}; it must be a whole number from 1 to {MAX_LISTS}"
                );
                return refused("max_lists", detail);
            }
            Method::Balanced(Balanced {
                credit: BalancedCredit::Published,
                verdict: ScoreVerdict::Score,
            }) => {
                let detail = "`verdict` is score, but the published credit of balanced \
                              interleaving has no fair score; choose `credit` debiased";
                return refused("verdict", detail.into());
            }
            _ => {}
        }
        self.validate_click_weights()
    }

    fn validate_click_weights(&self) -> Result<(), InvalidSpec> {
        let Some(weights) = self.click_weights else { return Ok(()) };
        let name = "click_weights";
        if let Some(feature) = weights.out_of_range() {
            let detail = format!(
                "`{feature}` of `{name}` must be from 0 to {MAX_FEATURE}, and a position must weigh \
                 more than 0"
            );
            return Err(InvalidSpec::new(name, detail));
        }
        let instead = match self.method {
            Method::Balanced(Balanced { credit: BalancedCredit::Published, .. }) => "debiased",
            Method::Probabilistic(Probabilistic {
                credit: PosteriorCredit::MoreClicks, ..
            }) => "expected-clicks",
            _ => return Ok(()),
        };
        let detail = format!(
            "`{name}` needs a credit that adds up clicks; choose `credit` {instead} of method `{}`",
            self.method.kind()
        );
        Err(InvalidSpec::new(name, detail))
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

/// The parameters that every kind has.
const COMMON: [&str; 2] = ["depth_policy", "click_weights"];

/// Reads a parameter that every kind has; `None` if it is missing.
fn common<T: DeserializeOwned>(
    object: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, InvalidSpec> {
    let Some(value) = object.remove(name) else { return Ok(None) };
    let read = serde_json::from_value(value);
    read.map(Some).map_err(|error| InvalidSpec::new(name, format!("`{name}`: {error}")))
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
