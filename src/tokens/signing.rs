//! The signing keys of this process: those of the store, read again from time to time and when a
//! token names one that is not known here.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::engine::error::ServiceError;
use crate::entropy;
use crate::store::{KeyStore, Nonce, SigningKey};
use crate::tokens::duel_token::{DuelId, DuelToken, SigningKeySet, TokenError};
use crate::tokens::page_payload::{DuelSecrets, PagePayload};

/// A token of an unknown key lets the store be asked at most this often: anybody can make up
/// tokens. Below the shortest time that a new key waits before it signs, so that no token of a real
/// key is ever refused for this.
const ASK_AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// Keys as the store has them.
pub struct SigningKeys {
    store: Arc<dyn KeyStore>,
    ring: RwLock<SigningKeySet>,
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl SigningKeys {
    /// The keys of `store`; the first process of all makes one.
    pub async fn load(store: Arc<dyn KeyStore>, now_ms: i64) -> Result<Self, ServiceError> {
        let keys = store.ensure_signing_key(&fresh_key(now_ms, now_ms)?).await?;
        Ok(Self { ring: RwLock::new(ring_of(&keys)?), store, asked: tokio::sync::Mutex::new(None) })
    }

    /// The token as text, signed with the key whose turn it is.
    pub fn sign(&self, token: &DuelToken) -> String {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).sign(token)
    }

    /// The token that `text` is, as far as this process knows the keys.
    pub fn open(&self, text: &str) -> Result<DuelId, TokenError> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).open(text)
    }

    /// The token and what was shown for it as text, under key `id`.
    pub fn seal(
        &self,
        id: u32,
        token: &DuelToken,
        shown: &PagePayload,
    ) -> Result<String, TokenError> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).seal(id, token, shown)
    }

    /// Number of the key that the token is signed with now.
    pub fn key_of(&self, token: &DuelToken) -> u32 {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).key_of(token)
    }

    /// What only those who have key `id` can know of the duel with this nonce.
    pub fn secrets(&self, id: u32, nonce: Nonce) -> Result<DuelSecrets, TokenError> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).secrets(id, nonce)
    }

    /// See [`SigningKeySet::seal_session`].
    pub fn seal_session(&self, content: &[u8], now_ms: i64) -> String {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).seal_session(content, now_ms)
    }

    /// See [`SigningKeySet::open_session`].
    pub fn open_session(&self, text: &str) -> Option<Vec<u8>> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).open_session(text)
    }

    /// Read the keys again.
    pub async fn refresh(&self) -> Result<(), ServiceError> {
        let ring = ring_of(&self.store.signing_keys().await?)?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
        Ok(())
    }

    /// Read the keys again because a token names one that is not known here, unless that was done a
    /// moment ago.
    pub async fn refresh_for_unknown(&self) -> Result<(), ServiceError> {
        let mut asked = self.asked.lock().await;
        if asked.is_none_or(|at| at.elapsed() >= ASK_AT_MOST_EVERY) {
            self.refresh().await?;
            *asked = Some(Instant::now());
        }
        Ok(())
    }
}

/// A new key that signs from `active_from_ms` on.
pub fn fresh_key(now_ms: i64, active_from_ms: i64) -> Result<SigningKey, ServiceError> {
    let no_entropy =
        |error| ServiceError::Internal(format!("the system gives no randomness: {error}"));
    Ok(SigningKey {
        id: (entropy::number().map_err(no_entropy)? >> 33) as u32,
        secret: entropy::bytes().map_err(no_entropy)?,
        created_at: now_ms,
        active_from: active_from_ms,
    })
}

fn ring_of(keys: &[SigningKey]) -> Result<SigningKeySet, ServiceError> {
    SigningKeySet::new(keys)
        .ok_or_else(|| ServiceError::Internal("the store has no signing key".into()))
}
