//! Rankers of an experiment.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::field_error::{FieldError, excerpt};
use rankduel_store::label::label_fault;

const MAX_ID_CHARS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 1000;

/// One of the rankings that an experiment compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Ranker {
    /// Its name in the search backend; unique within the experiment.
    pub id: String,
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

impl Ranker {
    /// The error of the id of a ranker that stands at `pointer` in a request.
    pub(super) fn id_error(&self, pointer: &str) -> Option<FieldError> {
        let length = self.id.chars().count();
        let detail = match label_fault(&self.id) {
            Some(fault) => format!("ranker `{}` has no valid id: {fault}", excerpt(&self.id)),
            None if (1..=MAX_ID_CHARS).contains(&length) => return None,
            None => {
                format!("a ranker's id is 1 to {MAX_ID_CHARS} characters; this one has {length}")
            }
        };
        Some(FieldError::new(pointer, detail))
    }

    /// The error of the description of a ranker that stands at `pointer` in a request.
    pub(super) fn description_error(&self, pointer: &str) -> Option<FieldError> {
        let description = self.description.as_deref().unwrap_or_default();
        (description.chars().count() > MAX_DESCRIPTION_CHARS).then(|| {
            FieldError::new(
                format!("{pointer}/description"),
                format!("a description has at most {MAX_DESCRIPTION_CHARS} characters"),
            )
        })
    }
}
