//! The interleaving methods that an experiment has had.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How rankings are interleaved, from a log position on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MethodVersion {
    /// Position of the entry that introduced it; 0 for the initial method.
    pub since: u64,
    /// The method. It is saved as JSON, the only form of its schema.
    #[serde(with = "as_json")]
    pub method: interleaving::Spec,
}

/// The method with this version number, counted from 1.
pub(super) fn method_of(methods: &[MethodVersion], version: u32) -> Option<interleaving::Spec> {
    let index = (version as usize).checked_sub(1)?;
    methods.get(index).map(|version| version.method)
}

/// A value with a form in JSON alone.
pub(super) mod as_json {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use serde::de::{DeserializeOwned, Error as _};

    pub fn serialize<T: Serialize, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(value);
        text.expect("names and numbers always serialise").serialize(serializer)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        reader: D,
    ) -> Result<T, D::Error> {
        serde_json::from_str(&String::deserialize(reader)?).map_err(D::Error::custom)
    }
}
