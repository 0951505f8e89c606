//! The member `conclude_at` of an experiment: when it concludes by itself, or `never`.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use rankduel_engine::experiment_spec::ConcludeAt;

/// When the experiment concludes automatically; `None` is written as `never`, so that a member
/// that is absent or `null` by accident does not turn conclusions off.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(into = "ConclusionShape")]
pub(crate) struct Conclusion(pub Option<ConcludeAt>);

/// An object, or `never`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Conclusion)]
#[serde(untagged)]
pub(crate) enum ConclusionShape {
    /// As soon as one of these holds.
    At(ConcludeAt),
    /// Only by a person.
    Never(Never),
}

/// The word for an experiment that does not conclude by itself.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Never {
    /// Never.
    Never,
}

impl From<Conclusion> for ConclusionShape {
    fn from(Conclusion(at): Conclusion) -> Self {
        at.map_or(Self::Never(Never::Never), Self::At)
    }
}

impl<'de> Deserialize<'de> for Conclusion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Member;
        impl<'de> Visitor<'de> for Member {
            type Value = Conclusion;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object, or \"never\"")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<Conclusion, E> {
                if word == "never" {
                    return Ok(Conclusion(None));
                }
                Err(E::invalid_value(serde::de::Unexpected::Str(word), &self))
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Conclusion, A::Error> {
                let at = ConcludeAt::deserialize(MapAccessDeserializer::new(members))?;
                Ok(Conclusion(Some(at)))
            }
        }
        deserializer.deserialize_any(Member)
    }
}
