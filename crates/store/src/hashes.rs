//! Hashes of what callers name, as events have them.

use serde::{Deserialize, Serialize};

/// Hash of a unit. As text it has 16 hexadecimal digits: readers of JSON lose digits of large
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnitHash(pub u64);

/// A text that is no hash of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a unit is 16 hexadecimal digits")]
pub struct NoUnitHash;

impl TryFrom<String> for UnitHash {
    type Error = NoUnitHash;

    fn try_from(text: String) -> Result<Self, NoUnitHash> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = u64::from_str_radix(&text, 16).ok().filter(|_| digits);
        hash.map(Self).ok_or(NoUnitHash)
    }
}

impl From<UnitHash> for String {
    fn from(UnitHash(hash): UnitHash) -> Self {
        format!("{hash:016x}")
    }
}

/// Hash of the id of a document, the same on all pages of an experiment. As text it has 10
/// hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DocumentHash(pub [u8; 5]);

/// A text that is no hash of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a document is 10 hexadecimal digits")]
pub struct NoDocumentHash;

impl TryFrom<String> for DocumentHash {
    type Error = NoDocumentHash;

    fn try_from(text: String) -> Result<Self, NoDocumentHash> {
        let digits = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| digits);
        let [_, _, _, hash @ ..] = number.ok_or(NoDocumentHash)?.to_be_bytes();
        Ok(Self(hash))
    }
}

impl From<DocumentHash> for String {
    fn from(DocumentHash([a, b, c, d, e]): DocumentHash) -> Self {
        let number = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        format!("{number:010x}")
    }
}

/// The optional unit of an event as text.
pub(crate) mod unit_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::UnitHash;

    pub fn serialize<S: Serializer>(unit: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        unit.map(UnitHash).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<UnitHash>::deserialize(reader)?.map(|UnitHash(hash)| hash))
    }
}
