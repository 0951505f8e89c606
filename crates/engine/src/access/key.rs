//! API keys: generating, parsing and naming them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use rankduel_store::entropy;

/// SHA-256 of a key's text.
pub type Digest = [u8; 32];

/// Prefix of a generated key, so that people and secret scanners recognise it.
const PREFIX: &str = "rankduel_";

/// A shorter key from the environment could be guessed.
const KEY_MIN_CHARACTERS: usize = 16;

/// Names a key in logs, lists and the audit log: the first 32 bits of its digest, which do not
/// reveal the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// The name of the key with this digest.
    pub fn of(&[a, b, c, d, ..]: &Digest) -> Self {
        Self(format!("{:08x}", u32::from_be_bytes([a, b, c, d])).into())
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

/// The digest of a key that a caller presents.
pub fn digest_of(presented: &[u8]) -> Digest {
    Sha256::digest(presented).into()
}

/// A new key. Its text is shown once and kept nowhere.
pub struct NewKey {
    /// The text that a caller sends.
    pub text: String,
    /// The digest that is kept.
    pub digest: Digest,
    /// Its name.
    pub id: KeyId,
}

impl NewKey {
    /// Generate a key from 256 random bits of the operating system.
    pub fn generate() -> Result<Self, rand::rngs::SysError> {
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(entropy::bytes::<32>()?));
        let digest = digest_of(text.as_bytes());
        Ok(Self { id: KeyId::of(&digest), text, digest })
    }
}

/// The keys that a server was started with: each allows everything. Without any, and without any
/// in the database, everybody may call.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[(Digest, KeyId)]>);

/// Why a list of keys was refused. A message never repeats a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// The key with this number has this many characters, which is too few.
    #[error(
        "key {0} has {1} characters; it needs at least {KEY_MIN_CHARACTERS}, for instance from \
         `openssl rand -hex 32`"
    )]
    Short(usize, usize),
    /// The key with this number has a character that a header cannot contain.
    #[error(
        "key {0} has a character that an Authorization header cannot contain; use printable ASCII \
         without spaces"
    )]
    Character(usize),
}

impl ApiKeys {
    /// Parse keys that are separated by commas; spaces around them are ignored. An empty text has
    /// no keys.
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

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Digests and names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Digest, KeyId)> {
        self.0.iter()
    }
}
