//! Access control: scopes, API keys, and the authors of actions.
//!
//! A key is 256 random bits. Only its SHA-256 digest is kept, and a key is found by its digest: a
//! request costs one hash and one lookup, and a reader of the database learns no key. A slow
//! password hash would only protect guessable secrets, and 256 random bits cannot be guessed.

mod access_keys;
mod api_key_set;
mod ended_sessions;
mod key;
mod key_changes;
mod scope;

pub use access_keys::AccessKeys;
pub use api_key_set::{ApiKeySet, KnownKey, RunningOfKey};
pub use ended_sessions::EndedSessions;
pub use key::{ApiKeys, Digest, KeyError, KeyId, NewKey, digest_of};
pub use key_changes::{
    KEY_DAYS_MAX, KeyChangeError, KeyRequest, KeyRotation, KeyState, OVERLAP_SECONDS_DEFAULT,
    OVERLAP_SECONDS_MAX, create_key, find_key, revoke_key, rotate_key,
};
pub use rankduel_store::Actor;
pub use scope::{Scope, Scopes, UnknownScope};
