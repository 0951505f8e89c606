//! Making, rotating and revoking the API keys of the database. Each change is written in one
//! transaction with its note in the audit log.

use rand::rngs::SysError;
use serde_json::{Value, json};

use super::key::NewKey;
use super::scope::Scopes;
use crate::clock::rfc3339;
use rankduel_store::label::label_fault;
use rankduel_store::{Actor, ApiKeyRecord, AuditNote, KeyStore, StoreError};

/// Most days until a key expires: a century.
pub const KEY_DAYS_MAX: u32 = 36_500;
/// Seconds for which a key stays valid beside the key that replaces it, by default.
pub const OVERLAP_SECONDS_DEFAULT: u32 = 86_400;
/// Most seconds of that overlap: a year.
pub const OVERLAP_SECONDS_MAX: u32 = 31_536_000;
/// Most characters in the name of a key.
const NAME_MAX: usize = 100;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// A key to make.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRequest {
    /// A name for people; see [`KeyRequest::name_error`].
    pub name: String,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// Names of the experiments that it is limited to; `None`: all.
    pub experiments: Option<Vec<String>>,
    /// Days until it expires, at most [`KEY_DAYS_MAX`]; `None`: never.
    pub expires_in_days: Option<u32>,
}

/// How a key is replaced by a new one with the same rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRotation {
    /// Seconds until the old key ends, at most [`OVERLAP_SECONDS_MAX`].
    pub overlap_seconds: u32,
    /// Days until the new key expires, at most [`KEY_DAYS_MAX`]; `None`: never.
    pub expires_in_days: Option<u32>,
}

impl KeyRotation {
    /// Its errors, with a JSON pointer each.
    pub fn errors(&self) -> Vec<(&'static str, String)> {
        let mut errors = Vec::new();
        if self.overlap_seconds > OVERLAP_SECONDS_MAX {
            let detail = format!("the old key ends after at most {OVERLAP_SECONDS_MAX} seconds");
            errors.push(("/overlap_seconds", detail));
        }
        if self.expires_in_days.is_some_and(|days| !(1..=KEY_DAYS_MAX).contains(&days)) {
            let detail = format!("a key expires after 1 to {KEY_DAYS_MAX} days");
            errors.push(("/expires_in_days", detail));
        }
        errors
    }

    /// The end of the old key if it is replaced now, in unix milliseconds.
    pub fn old_ends_at(&self, old: &ApiKeyRecord, now: i64) -> i64 {
        let ends_at = now + i64::from(self.overlap_seconds) * 1000;
        old.expires_at.map_or(ends_at, |at| at.min(ends_at))
    }
}

/// Why a key could not be made, rotated or revoked.
#[derive(Debug, thiserror::Error)]
pub enum KeyChangeError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system has no source of randomness.
    #[error("the system does not provide randomness: {0}")]
    NoRandomness(#[from] SysError),
    /// No key of the database has this id.
    #[error("there is no key {0}")]
    Unknown(String),
    /// The key with this id has expired or was revoked.
    #[error("key {0} has ended already")]
    Ended(String),
}

/// Whether a key of the database is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It is accepted.
    Good,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl KeyState {
    /// The state of this key, in unix milliseconds.
    pub fn of(key: &ApiKeyRecord, now: i64) -> Self {
        match (key.revoked_at, key.expires_at) {
            (Some(_), _) => Self::Revoked,
            (None, Some(at)) if at <= now => Self::Expired,
            _ => Self::Good,
        }
    }

    /// The state in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl KeyRequest {
    /// Errors of the name of a key.
    pub fn name_error(name: &str) -> Option<String> {
        let invalid = name.trim().is_empty() || name.chars().count() > NAME_MAX;
        let length = format!("the name of a key has 1 to {NAME_MAX} characters");
        let fault = label_fault(name.trim()).map(|fault| format!("the name of a key: {fault}"));
        fault.or_else(|| invalid.then_some(length))
    }

    /// A new key with its record, at this time in unix milliseconds.
    fn generate(&self, now: i64) -> Result<(NewKey, ApiKeyRecord), SysError> {
        let key = NewKey::generate()?;
        let record = ApiKeyRecord {
            id: key.id.as_str().to_owned(),
            digest: key.digest,
            name: self.name.trim().to_owned(),
            scopes: self.scopes.to_string(),
            experiments: self.experiments.clone(),
            replaces: None,
            created_at: now,
            expires_at: self.expires_in_days.map(|days| now + i64::from(days) * DAY_MS),
            revoked_at: None,
            last_used_at: None,
        };
        Ok((key, record))
    }
}

/// Make a key. `show` gets it before it is added; if it fails, nothing is added. Times in unix
/// milliseconds.
pub async fn create_key<E: From<KeyChangeError>>(
    store: &dyn KeyStore,
    request: &KeyRequest,
    by: &Actor,
    now: i64,
    show: impl FnOnce(&NewKey, &ApiKeyRecord) -> Result<(), E>,
) -> Result<(NewKey, ApiKeyRecord), E> {
    let (key, record) = request.generate(now).map_err(KeyChangeError::from)?;
    show(&key, &record)?;
    let note =
        AuditNote::new(by, "key-created", &record.id, now).changed(None, Some(audited(&record)));
    store.add_api_key(&record, None, &note).await.map_err(KeyChangeError::from)?;
    Ok((key, record))
}

/// Make a key with the rights of key `id`, which ends after the overlap. Returns the record of the
/// old key, too. `show` is as in [`create_key`]. Times in unix milliseconds.
pub async fn rotate_key<E: From<KeyChangeError>>(
    store: &dyn KeyStore,
    id: &str,
    rotation: &KeyRotation,
    by: &Actor,
    now: i64,
    show: impl FnOnce(&NewKey, &ApiKeyRecord) -> Result<(), E>,
) -> Result<(NewKey, ApiKeyRecord, ApiKeyRecord), E> {
    let old = find_key(store, id).await?;
    if KeyState::of(&old, now) != KeyState::Good {
        return Err(KeyChangeError::Ended(id.into()).into());
    }
    let request = KeyRequest {
        name: old.name.clone(),
        scopes: Scopes::from_names(&old.scopes),
        experiments: old.experiments.clone(),
        expires_in_days: rotation.expires_in_days,
    };
    let (key, record) = request.generate(now).map_err(KeyChangeError::from)?;
    show(&key, &record)?;
    let record = ApiKeyRecord { replaces: Some(old.id.clone()), ..record };
    let ends_at = rotation.old_ends_at(&old, now);
    let note = AuditNote::new(by, "key-rotated", &old.id, now).changed(
        Some(audited(&old)),
        Some(json!({"replaced_by": record.id, "expires_at": rfc3339(ends_at)})),
    );
    let replaced = Some((&*old.id, ends_at));
    store.add_api_key(&record, replaced, &note).await.map_err(KeyChangeError::from)?;
    Ok((key, record, ApiKeyRecord { expires_at: Some(ends_at), ..old }))
}

/// Revoke a key from this time on, in unix milliseconds. Returns whether it was not revoked before.
pub async fn revoke_key(
    store: &dyn KeyStore,
    id: &str,
    by: &Actor,
    now: i64,
) -> Result<bool, KeyChangeError> {
    let old = find_key(store, id).await?;
    let note = AuditNote::new(by, "key-revoked", &old.id, now).changed(Some(audited(&old)), None);
    Ok(store.revoke_api_key(&old.id, now, &note).await?)
}

/// The key of the database with this id.
pub async fn find_key(store: &dyn KeyStore, id: &str) -> Result<ApiKeyRecord, KeyChangeError> {
    let keys = store.api_keys().await?;
    keys.into_iter()
        .find(|key| key.id == id)
        .ok_or_else(|| KeyChangeError::Unknown(id.chars().take(100).collect()))
}

/// A key as the audit log keeps it.
fn audited(record: &ApiKeyRecord) -> Value {
    json!({
        "name": record.name,
        "scopes": Scopes::from_names(&record.scopes).iter().collect::<Vec<_>>(),
        "experiments": record.experiments,
        "expires_at": record.expires_at.map(rfc3339),
    })
}
