//! Who may call: API keys.
//!
//! Keys come from the environment and are kept as SHA-256 digests. They are high-entropy secrets, not passwords, so a
//! plain digest is enough; and because digests are compared, not keys, and every one of them whatever the others say,
//! the time it takes tells nothing about a key.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};

use super::problem::{Problem, ProblemKind};

/// A shorter key could be guessed.
const KEY_MIN_CHARACTERS: usize = 16;

/// Names a key in logs: the first 32 bits of its digest, from which nobody gets the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// Eight hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug)]
struct Key {
    digest: [u8; 32],
    id: KeyId,
}

/// The keys of a server; none at all means that everybody may call.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[Key]>);

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
    /// Read keys that are separated by commas; spaces around them do not count. An empty text is no keys.
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
            let digest: [u8; 32] = Sha256::digest(key).into();
            let id = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            Ok(Key { digest, id: KeyId(id.into()) })
        };
        text.split(',').enumerate().map(key).collect::<Result<Vec<_>, _>>().map(|keys| Self(keys.into()))
    }

    /// Whether everybody may call.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Which key this is.
    fn find(&self, presented: &[u8]) -> Option<&KeyId> {
        let digest: [u8; 32] = Sha256::digest(presented).into();
        let mut found = None;
        for key in self.0.iter() {
            let difference = digest.iter().zip(&key.digest).fold(0, |bits, (a, b)| bits | (a ^ b));
            if difference == 0 {
                found = Some(&key.id);
            }
        }
        found
    }

    /// Who calls, or why not.
    fn admit(&self, headers: &HeaderMap) -> Result<&KeyId, Problem> {
        let refuse = |challenge: &'static str, detail: &str| {
            Problem::new(ProblemKind::Unauthorized, detail)
                .header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
        };
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(refuse(
                "Bearer realm=\"rankduel\"",
                "The request has no key; send `Authorization: Bearer KEY`.",
            ));
        };
        let value = value.as_bytes();
        match value.split_at_checked(7) {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                self.find(key.trim_ascii()).ok_or_else(|| {
                    refuse(
                        "Bearer realm=\"rankduel\", error=\"invalid_token\"",
                        "This server does not know the key that was sent.",
                    )
                })
            }
            _ => Err(refuse(
                "Bearer realm=\"rankduel\"",
                "The Authorization header is not of the form `Bearer KEY`.",
            )),
        }
    }
}

/// Whether this path needs no key: what probes and readers of the documentation need, and nothing that tells about an
/// experiment.
pub(super) fn is_open(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/openapi.yaml" | "/docs") || path.starts_with("/problems/")
}

/// Let through what has a key or needs none, and say which key it is, if any.
pub(super) fn admit<'k>(keys: &'k ApiKeys, request: &Request) -> Result<Option<&'k KeyId>, Problem> {
    if keys.is_empty() || is_open(request.uri().path()) {
        Ok(None)
    } else {
        keys.admit(request.headers()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_be_guessed_or_not_be_sent_are_refused_without_being_repeated() {
        assert!(ApiKeys::parse("").unwrap().is_empty());
        assert!(ApiKeys::parse("  ").unwrap().is_empty());
        assert_eq!(ApiKeys::parse("0123456789abcdef, 0123456789abcde").unwrap_err(), KeyError::Short(2, 15));
        assert_eq!(ApiKeys::parse("0123456789abcdef,").unwrap_err(), KeyError::Short(2, 0));
        assert_eq!(ApiKeys::parse("0123456789 abcdef").unwrap_err(), KeyError::Character(1));
        assert_eq!(ApiKeys::parse("0123456789abcdéf").unwrap_err(), KeyError::Character(1));
    }

    #[test]
    fn each_key_is_found_and_named_apart_and_nothing_else_is() {
        let keys = ApiKeys::parse("first-key-0123456789, second-key-0123456789").unwrap();
        let first = keys.find(b"first-key-0123456789").unwrap();
        let second = keys.find(b"second-key-0123456789").unwrap();
        assert_ne!(first, second);
        assert_eq!(first.as_str().len(), 8);
        for other in [&b""[..], b"first-key-012345678", b"first-key-01234567890", b"first-key-0123456789, "] {
            assert_eq!(keys.find(other), None);
        }
    }
}
