//! Who may do what: scopes, API keys, and to whom an act is put down.
//!
//! A key is 256 random bits. It is kept as its SHA-256 digest and found by that digest, so a look
//! costs one hash and one lookup, and whoever reads the database has no key. A slow password hash
//! would protect guessable secrets; nobody guesses 256 bits, and a plain digest of them tells
//! nothing.

mod actor;
mod key;
mod ring;
mod scope;

pub use actor::Actor;
pub use key::{ApiKeys, Digest, KeyError, KeyId, NewKey, digest_of};
pub use ring::{AccessKeys, ApiKeySet, KnownKey};
pub use scope::{Scope, Scopes, UnknownScope};
