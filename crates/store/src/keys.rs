//! Signing keys and API keys, as callers of a store see them.

use std::fmt;

/// Identifies a session of the dashboard: random bytes.
pub type SessionId = [u8; 16];

/// A key that duels are signed with. Its `Debug` form shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// Its number, carried by each token.
    pub id: u32,
    /// 32 random bytes.
    pub secret: [u8; 32],
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds from which on it signs. Every process must know it by then.
    pub active_from: i64,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An API key as the database has it; never its text.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeyRecord {
    /// The first 32 bits of the digest, in hexadecimal.
    pub id: String,
    /// SHA-256 of the key's text.
    pub digest: [u8; 32],
    /// A name for people.
    pub name: String,
    /// Names of its scopes, separated by spaces. Opaque to the store.
    pub scopes: String,
    /// Names of the experiments that it is valid for; `None`: all.
    pub experiments: Option<Vec<String>>,
    /// Id of the key that it replaces.
    pub replaces: Option<String>,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds from which on it is refused.
    pub expires_at: Option<i64>,
    /// Unix milliseconds from which on it is refused.
    pub revoked_at: Option<i64>,
    /// Unix milliseconds, to the minute.
    pub last_used_at: Option<i64>,
}
