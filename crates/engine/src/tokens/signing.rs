//! The signing keys of this process: a copy of those in the store. They are read again from time to
//! time, and when a token names an unknown key.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rand::rngs::SysError;

use crate::tokens::key_set::SigningKeySet;
use rankduel_store::entropy;
use rankduel_store::{SharedStore, SigningKey, StoreError};

/// Minimum time between two reads of the store for unknown keys: anybody can send tokens with
/// invented keys. It is below the shortest time that a new key waits before it signs, so a token of
/// a real key is never refused for this reason.
const ASK_AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// Why signing keys cannot be loaded or made.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system has no source of randomness.
    #[error("the operating system provides no randomness: {0}")]
    NoRandomness(#[from] SysError),
    /// The store has no signing key.
    #[error("the store has no signing key")]
    NoKey,
}

/// The keys of the store.
pub struct SigningKeys {
    store: SharedStore,
    keys: RwLock<Arc<SigningKeySet>>,
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl SigningKeys {
    /// Load the keys of `store`. The first process makes one.
    pub async fn load(store: SharedStore, now_ms: i64) -> Result<Self, SigningKeyError> {
        let keys = store.ensure_signing_key(&fresh_key(now_ms, now_ms)?).await?;
        Ok(Self {
            keys: RwLock::new(Arc::new(set_of(&keys)?)),
            store,
            asked: tokio::sync::Mutex::new(None),
        })
    }

    /// The keys as they are now.
    pub fn current(&self) -> Arc<SigningKeySet> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Read the keys again.
    pub async fn refresh(&self) -> Result<(), SigningKeyError> {
        let keys = Arc::new(set_of(&self.store.signing_keys().await?)?);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// Read the keys again because a token names an unknown one, unless that was done a moment ago.
    pub async fn refresh_for_unknown(&self) -> Result<(), SigningKeyError> {
        let mut asked = self.asked.lock().await;
        if asked.is_none_or(|at| at.elapsed() >= ASK_AT_MOST_EVERY) {
            self.refresh().await?;
            *asked = Some(Instant::now());
        }
        Ok(())
    }
}

/// A new key that signs from `active_from_ms`.
pub fn fresh_key(now_ms: i64, active_from_ms: i64) -> Result<SigningKey, SigningKeyError> {
    Ok(SigningKey {
        id: (entropy::number()? >> 33) as u32,
        secret: entropy::bytes()?,
        created_at: now_ms,
        active_from: active_from_ms,
    })
}

fn set_of(keys: &[SigningKey]) -> Result<SigningKeySet, SigningKeyError> {
    SigningKeySet::new(keys).ok_or(SigningKeyError::NoKey)
}
