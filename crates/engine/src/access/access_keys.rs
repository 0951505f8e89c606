//! The API keys of the database, cached by this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::api_key_set::{ApiKeySet, KeyUsage, KnownKey};
use super::key::KeyId;
use super::scope::Scopes;
use rankduel_store::{ApiKeyRecord, KeyStore, StoreError};

/// Shortest time between two reads that unknown keys cause: anybody can make up keys.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_millis(100);

/// The result of a read, for all who wait for it.
type ReadResult = Result<(), Arc<StoreError>>;

/// Caches the API keys of the database. They are read again at intervals, and when a caller
/// presents an unknown key.
pub struct AccessKeys {
    store: Arc<dyn KeyStore>,
    keys: RwLock<Arc<ApiKeySet>>,
    /// The times of use that are already in the database.
    noted: Mutex<HashMap<KeyId, i64>>,
    /// When an unknown key last caused a read, and the result, unless it was cut off.
    last_read: tokio::sync::Mutex<Option<(Instant, Option<ReadResult>)>>,
}

impl AccessKeys {
    /// Read the keys of `store`.
    pub async fn load(store: Arc<dyn KeyStore>) -> Result<Self, StoreError> {
        let keys = Self {
            store,
            keys: RwLock::default(),
            noted: Mutex::default(),
            last_read: tokio::sync::Mutex::new(None),
        };
        keys.refresh().await?;
        Ok(keys)
    }

    /// The keys as of the last read.
    pub fn current(&self) -> Arc<ApiKeySet> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Read the keys again. Keys are revoked and never deleted, so a set that has keys never
    /// becomes empty: a key that the database does not have any more is refused from now on.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let records = self.store.api_keys().await?;
        let before = self.current();
        let read: ApiKeySet =
            records.into_iter().map(|record| known_key(record, &before)).collect();
        let missing: Vec<_> =
            before.iter().filter(|key| read.named(key.id().as_str()).is_none()).collect();
        for key in missing.iter().filter(|key| !key.is_ended()) {
            tracing::warn!(key = key.id().as_str(), "an API key left the database: it is refused");
        }
        let keys = read.with(missing.into_iter().map(KnownKey::ended));
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        Ok(())
    }

    /// Read the keys again because a caller presents an unknown one. Callers that came
    /// before a read share its result; each read waits for the end of the pause.
    pub async fn refresh_for_unknown(&self) -> Result<(), Arc<StoreError>> {
        let arrived = Instant::now();
        let mut last_read = self.last_read.lock().await;
        if let Some((at, result)) = &*last_read {
            if let Some(result) = result
                && *at >= arrived
            {
                return result.clone();
            }
            if let Some(wait) = UNKNOWN_KEY_PAUSE.checked_sub(at.elapsed()) {
                tokio::time::sleep(wait).await;
            }
        }
        let at = Instant::now();
        *last_read = Some((at, None));
        let result = self.refresh().await.map_err(Arc::new);
        *last_read = Some((at, Some(result.clone())));
        result
    }

    /// Write the times of use that are not in the database yet.
    pub async fn note_uses(&self) -> Result<(), StoreError> {
        let uses: Vec<(KeyId, i64)> = {
            let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new =
                |(id, at): &(KeyId, i64)| *at > 0 && noted.get(id).is_none_or(|noted| at > noted);
            self.current()
                .iter()
                .map(|key| (key.id().clone(), key.used_at()))
                .filter(is_new)
                .collect()
        };
        if !uses.is_empty() {
            let rows: Vec<_> = uses.iter().map(|(id, at)| (id.as_str().to_owned(), *at)).collect();
            self.store.note_key_uses(&rows).await?;
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(uses);
        }
        Ok(())
    }
}

/// The key of `record`. Its use goes on across reads.
fn known_key(record: ApiKeyRecord, before: &ApiKeySet) -> KnownKey {
    let id = KeyId::from(&*record.id);
    let usage = match before.named(&record.id) {
        Some(known) => known.usage(),
        None => Arc::new(KeyUsage::last(record.last_used_at.unwrap_or(i64::MIN / 2))),
    };
    let ends_at = record.expires_at.unwrap_or(i64::MAX).min(record.revoked_at.unwrap_or(i64::MAX));
    let scopes = Scopes::from_names(&record.scopes);
    KnownKey::new(id, record.digest, scopes, record.experiments, ends_at, usage)
}
