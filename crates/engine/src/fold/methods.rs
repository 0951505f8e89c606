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

/// The interleaving methods that an experiment has had, version 1 first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Methods(Vec<MethodVersion>);

impl Methods {
    /// The initial method.
    pub(super) fn new(method: interleaving::Spec) -> Self {
        Self(vec![MethodVersion { since: 0, method }])
    }

    /// Another method, from this log position on.
    pub(super) fn add(&mut self, since: u64, method: interleaving::Spec) {
        self.0.push(MethodVersion { since, method });
    }

    /// All of them.
    pub fn all(&self) -> &[MethodVersion] {
        &self.0
    }

    /// Version and method for a duel that was selected at this log position.
    pub fn at(&self, chosen_at: u64) -> (u32, interleaving::Spec) {
        let version = self.0.partition_point(|version| version.since <= chosen_at).max(1);
        (version as u32, self.0[version - 1].method)
    }

    /// The method with this version number.
    pub fn version(&self, version: u32) -> Option<interleaving::Spec> {
        let index = (version as usize).checked_sub(1)?;
        self.0.get(index).map(|version| version.method)
    }
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
