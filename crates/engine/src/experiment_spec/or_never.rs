//! The member `conclude_at` of an experiment: when it concludes by itself, or `never`.

use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::conclude_at::{ConcludeAt, ConcludeAtChange};

/// When the experiment concludes automatically; `None` is written as `never`, so that a member
/// that is absent or `null` by accident does not turn conclusions off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrNever<T>(pub Option<T>);

/// An object, or `never`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ConclusionRule)]
#[serde(untagged)]
pub enum ConclusionShape {
    /// As soon as one of these holds.
    At(ConcludeAt),
    /// Only by a person.
    Never(Never),
}

/// A change of an object, or `never`.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = ConclusionRuleChange)]
#[serde(untagged)]
pub enum ConclusionChangeShape {
    /// As soon as one of these holds.
    At(ConcludeAtChange),
    /// Only by a person.
    Never(Never),
}

/// The word for an experiment that does not conclude by itself.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Never {
    /// Never.
    Never,
}

impl Serialize for OrNever<ConcludeAt> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape = self.0.map_or(ConclusionShape::Never(Never::Never), ConclusionShape::At);
        shape.serialize(serializer)
    }
}

impl Serialize for OrNever<ConcludeAtChange> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let never = ConclusionChangeShape::Never(Never::Never);
        self.0.map_or(never, ConclusionChangeShape::At).serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrNever<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Member<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Member<T> {
            type Value = OrNever<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object, or \"never\"")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<OrNever<T>, E> {
                if word == "never" {
                    return Ok(OrNever(None));
                }
                Err(E::invalid_value(serde::de::Unexpected::Str(word), &self))
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<OrNever<T>, A::Error> {
                Ok(OrNever(Some(T::deserialize(MapAccessDeserializer::new(members))?)))
            }
        }
        deserializer.deserialize_any(Member(PhantomData))
    }
}
