//! API keys as they are made, given to the server, and named.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::entropy;

/// SHA-256 of a key's text.
pub type Digest = [u8; 32];

/// How a key that this program made begins, so that people and secret scanners know what it is.
const PREFIX: &str = "rankduel_";

/// A shorter key from the environment could be guessed.
const KEY_MIN_CHARACTERS: usize = 16;

/// Names a key in logs, lists and the audit log: the first 32 bits of its digest, from which nobody
/// gets the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// The name of the key with this digest.
    pub fn of(digest: &Digest) -> Self {
        let mut id = String::with_capacity(8);
        for byte in &digest[..4] {
            // writing to a string does not fail
            let _ = write!(id, "{byte:02x}");
        }
        Self(id.into())
    }

    /// Eight hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for KeyId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

/// The digest of a key as it was presented.
pub fn digest_of(presented: &[u8]) -> Digest {
    Sha256::digest(presented).into()
}

/// A key that was just made; its text is shown once and kept nowhere.
pub struct NewKey {
    /// What a caller sends.
    pub text: String,
    /// What is kept.
    pub digest: Digest,
    /// Its name.
    pub id: KeyId,
}

impl NewKey {
    /// Make one of 256 bits from the operating system.
    pub fn generate() -> Result<Self, rand::rngs::SysError> {
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(entropy::bytes::<32>()?));
        let digest = digest_of(text.as_bytes());
        Ok(Self { id: KeyId::of(&digest), text, digest })
    }
}

/// The keys that a server was started with: each may do everything. None at all, and none in the
/// database either, means that everybody may call.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[(Digest, KeyId)]>);

/// Why a list of keys was refused. Never repeats a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// Too short.
    #[error(
        "key {0} has {1} characters; it needs at least {KEY_MIN_CHARACTERS}, for instance from `openssl rand -hex 32`"
    )]
    Short(usize, usize),
    /// What cannot stand in a header.
    #[error(
        "key {0} has a character that cannot stand in an Authorization header; use printable ASCII without spaces"
    )]
    Character(usize),
}

impl ApiKeys {
    /// Read keys that are separated by commas; spaces around them do not count. An empty text is no
    /// keys.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let key = |(index, key): (usize, &str)| {
            let key = key.trim();
            if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(KeyError::Character(index + 1));
            }
            if key.len() < KEY_MIN_CHARACTERS {
                return Err(KeyError::Short(index + 1, key.len()));
            }
            let digest = digest_of(key.as_bytes());
            Ok((digest, KeyId::of(&digest)))
        };
        text.split(',')
            .enumerate()
            .map(key)
            .collect::<Result<Vec<_>, _>>()
            .map(|keys| Self(keys.into()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Digests and names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Digest, KeyId)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_be_guessed_or_not_be_sent_are_refused_without_being_repeated() {
        assert!(ApiKeys::parse("").unwrap().is_empty());
        assert!(ApiKeys::parse("  ").unwrap().is_empty());
        assert_eq!(
            ApiKeys::parse("0123456789abcdef, 0123456789abcde").unwrap_err(),
            KeyError::Short(2, 15)
        );
        assert_eq!(ApiKeys::parse("0123456789abcdef,").unwrap_err(), KeyError::Short(2, 0));
        assert_eq!(ApiKeys::parse("0123456789 abcdef").unwrap_err(), KeyError::Character(1));
        assert_eq!(ApiKeys::parse("0123456789abcdéf").unwrap_err(), KeyError::Character(1));
    }

    #[test]
    fn a_made_key_can_be_sent_and_is_named_by_its_digest() {
        let (one, other) = (NewKey::generate().unwrap(), NewKey::generate().unwrap());
        assert_ne!(one.text, other.text);
        assert_eq!(one.text.len(), PREFIX.len() + 43);
        let given = ApiKeys::parse(&one.text).unwrap();
        let (digest, id) = given.iter().next().unwrap();
        assert_eq!((digest, id), (&one.digest, &one.id));
        assert_eq!(one.id.as_str().len(), 8);
    }
}
