//! What an experiment is created from, and what is wrong with it when it cannot be.

use std::collections::HashMap;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::engine::page_rules::PageRules;
use dueling_bandits::{MAX_RANKERS, MIN_RANKERS, PolicySpec, Roster, TieRule};

/// How long a duel may stay unanswered unless the experiment says otherwise.
pub const DEFAULT_DUEL_TTL_SECONDS: u32 = 3600;
/// Longest time that a duel may stay unanswered: 30 days.
pub const MAX_DUEL_TTL_SECONDS: u32 = 30 * 24 * 3600;
const MAX_NAME_BYTES: usize = 64;
const MAX_RANKER_ID_CHARS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 1000;

/// One version of the ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Ranker {
    /// What the search backend calls it; unique within the experiment.
    pub id: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A ranker is written as its id alone or as an object.
impl<'de> Deserialize<'de> for Ranker {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Object {
            id: String,
            description: Option<String>,
        }
        struct StringOrObject;
        impl<'de> Visitor<'de> for StringOrObject {
            type Value = Ranker;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str(
                    "a ranker: its id as a string, or an object with `id` and `description`",
                )
            }
            fn visit_str<E>(self, id: &str) -> Result<Ranker, E> {
                Ok(Ranker { id: id.into(), description: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Ranker, A::Error> {
                let Object { id, description } =
                    Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Ranker { id, description })
            }
        }
        deserializer.deserialize_any(StringOrObject)
    }
}

/// An experiment as it was asked for, defaults filled in. Two requests for one name are the same
/// request when their specs are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// 2 to 1024 rankers: all that it has ever had, in the order in which they came.
    pub rankers: Vec<Ranker>,
    /// Which policy chooses.
    pub policy: PolicySpec,
    /// What a tie counts.
    pub ties: TieRule,
    /// How long a duel may stay unanswered.
    pub duel_ttl_seconds: u32,
    /// The seed that was asked for; without one the service draws it.
    pub seed: Option<u64>,
    /// When the service concludes it by itself; without, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude_at: Option<ConcludeAt>,
    /// The policies that it had before its own, the first one first: one for each change in the
    /// log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_policies: Vec<PolicySpec>,
    /// Who of `rankers` came after it was created, and who has gone: one for each such change in
    /// the log.
    #[serde(default, rename = "comings", skip_serializing_if = "RosterChanges::is_none")]
    pub roster_changes: RosterChanges,
    /// What holds for its pages.
    #[serde(default)]
    pub pages: PageRules,
}

/// How the rankers of an experiment differ from those that it was created with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RosterChanges {
    /// How many, the last ones, were enlisted after it was created.
    pub enlisted: u16,
    /// Indices of those that were retired, in the order in which they were.
    pub retired: Vec<u16>,
}

impl RosterChanges {
    /// Whether they do not differ.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How many changes that took.
    pub fn changes(&self) -> usize {
        usize::from(self.enlisted) + self.retired.len()
    }
}

/// Most policies that one experiment has had.
pub const MAX_POLICIES: usize = 100;

/// When an experiment concludes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcludeAt {
    /// As soon as it is certain at this confidence, 0.5 to 0.9999, who is a Copeland winner: at
    /// most so often is another one concluded on, however long the experiment runs.
    #[schema(minimum = 0.5, maximum = 0.9999, example = 0.95)]
    pub confidence: f64,
}

/// Confidences of a verdict.
pub const CONFIDENCE: std::ops::RangeInclusive<f64> = 0.5..=0.9999;

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer into the request.
    pub pointer: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl FieldError {
    /// `detail` about the value at `pointer`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// What is wrong with an experiment's name; `None` when it is right.
pub fn name_error(name: &str) -> Option<FieldError> {
    let starts = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let right = name.len() <= MAX_NAME_BYTES
        && name.starts_with(starts)
        && name.chars().all(|c| starts(c) || matches!(c, '.' | '_' | '-'));
    (!right).then(|| {
        FieldError::new(
            "/name",
            "an experiment's name is 1 to 64 of a-z, 0-9, `.`, `_`, `-`, and starts with a letter or digit",
        )
    })
}

impl ExperimentSpec {
    /// A spec as it was written when its experiment was created, perhaps by another version of this
    /// program; the error says what this one cannot make of it.
    pub fn read(text: &str) -> Result<Self, String> {
        let spec: Self = serde_json::from_str(text).map_err(|error| {
            format!(
                "its spec is not one that this version knows ({error}); was it created by a newer version?"
            )
        })?;
        let count = spec.rankers.len();
        if !(MIN_RANKERS..=MAX_RANKERS).contains(&count) {
            return Err(format!(
                "it has {count} rankers, and this version takes {MIN_RANKERS} to {MAX_RANKERS}"
            ));
        }
        spec.policy
            .validate(count)
            .map_err(|error| format!("its policy is not one that can run: {error}"))?;
        let initial_rankers = count.checked_sub(spec.roster_changes.enlisted.into());
        if initial_rankers.is_none_or(|initial_rankers| initial_rankers < MIN_RANKERS)
            || spec.roster().is_none()
        {
            return Err("the rankers that it lists as enlisted or retired cannot be".into());
        }
        Ok(spec)
    }

    /// Everything that is wrong with it; empty when it can be created.
    pub fn errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let count = self.rankers.len();
        if !(MIN_RANKERS..=MAX_RANKERS).contains(&count) {
            errors.push(FieldError::new(
                "/rankers",
                format!(
                    "an experiment has {MIN_RANKERS} to {MAX_RANKERS} rankers; this one has {count}"
                ),
            ));
        }
        let mut seen = HashMap::new();
        for (index, ranker) in self.rankers.iter().enumerate() {
            let pointer = format!("/rankers/{index}");
            let length = ranker.id.chars().count();
            if length == 0
                || length > MAX_RANKER_ID_CHARS
                || ranker.id.chars().any(char::is_control)
            {
                errors.push(FieldError::new(
                    &pointer,
                    format!("a ranker's id is 1 to {MAX_RANKER_ID_CHARS} characters, none of them a control character"),
                ));
            }
            if let Some(earlier) = seen.insert(ranker.id.as_str(), index) {
                errors.push(FieldError::new(
                    &pointer,
                    format!(
                        "ranker `{}` is listed twice; it is also number {earlier} (from 0)",
                        ranker.id
                    ),
                ));
            }
            let description = ranker.description.as_deref().unwrap_or_default();
            if description.chars().count() > MAX_DESCRIPTION_CHARS {
                errors.push(FieldError::new(
                    format!("{pointer}/description"),
                    format!("a description has at most {MAX_DESCRIPTION_CHARS} characters"),
                ));
            }
        }
        if let Err(error) = self.policy.validate(count) {
            let pointer = match error.parameter.as_str() {
                "" => "/policy".to_string(),
                parameter => format!("/policy/{parameter}"),
            };
            errors.push(FieldError::new(pointer, error.detail));
        }
        if let Some(reason) = self.policy.description().not_served {
            errors.push(FieldError::new(
                "/policy/kind",
                format!("policy `{}` cannot serve an experiment: {reason}", self.policy.kind()),
            ));
        }
        if let Some(ConcludeAt { confidence }) = self.conclude_at
            && !CONFIDENCE.contains(&confidence)
        {
            errors.push(FieldError::new(
                "/conclude_at/confidence",
                format!(
                    "`confidence` is {confidence}; it must be {} to {}",
                    CONFIDENCE.start(),
                    CONFIDENCE.end()
                ),
            ));
        }
        if !(1..=MAX_DUEL_TTL_SECONDS).contains(&self.duel_ttl_seconds) {
            errors.push(FieldError::new(
                "/duel_ttl_seconds",
                format!(
                    "`duel_ttl_seconds` is {}; it must be 1 to {MAX_DUEL_TTL_SECONDS}",
                    self.duel_ttl_seconds
                ),
            ));
        }
        errors.extend(self.pages.errors(&self.rankers, self.duel_ttl_seconds));
        errors
    }

    /// The spec with another policy from here on.
    pub fn under(&self, policy: PolicySpec) -> Self {
        let mut changed = self.clone();
        changed.former_policies.push(std::mem::replace(&mut changed.policy, policy));
        changed
    }

    /// The spec with one more ranker from here on.
    pub fn with_enlisted(&self, ranker: Ranker) -> Self {
        let mut changed = self.clone();
        changed.rankers.push(ranker);
        changed.roster_changes.enlisted += 1;
        changed
    }

    /// The spec without `ranker` from here on.
    pub fn with_retired(&self, ranker: usize) -> Self {
        let mut changed = self.clone();
        changed.roster_changes.retired.push(ranker as u16);
        changed
    }

    /// The spec as the experiment was created from it.
    pub fn as_created(&self) -> Self {
        let policy = self.former_policies.first().unwrap_or(&self.policy).clone();
        let rankers = self.rankers[..self.initial_rankers()].to_vec();
        let roster_changes = RosterChanges::default();
        Self { rankers, policy, former_policies: Vec::new(), roster_changes, ..self.clone() }
    }

    /// How many rankers it was created with.
    pub fn initial_rankers(&self) -> usize {
        self.rankers.len() - usize::from(self.roster_changes.enlisted)
    }

    /// Who takes part; `None` where what is written of those who do not is wrong.
    pub fn roster(&self) -> Option<Roster> {
        let mut retired = self.roster_changes.retired.clone();
        retired.sort_unstable();
        Roster::with_retired(self.rankers.len(), &retired)
    }

    /// Whether this ranker was retired.
    pub fn is_retired(&self, ranker: usize) -> bool {
        self.roster_changes.retired.iter().any(|&retired| usize::from(retired) == ranker)
    }

    /// Index of the ranker with this id.
    pub fn ranker_index(&self, id: &str) -> Option<usize> {
        self.rankers.iter().position(|ranker| ranker.id == id)
    }
}
