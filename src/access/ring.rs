//! The keys that this process knows: those that it was started with, and those of the database,
//! read again from time to time and when a caller presents one that is not known here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::key::{ApiKeys, Digest, KeyId};
use super::scope::{Scope, Scopes};
use crate::store::{SharedStore, StoreError};

/// An unknown key lets the database be asked at most this often: anybody can make up keys.
const ASK_AT_MOST_EVERY: Duration = Duration::from_millis(100);

/// The use of a key is noted to the minute.
const USE_GRAIN_MS: i64 = 60_000;

/// A key and what it may do.
#[derive(Debug)]
pub struct KnownKey {
    id: KeyId,
    digest: Digest,
    scopes: Scopes,
    /// Names of the experiments that it is for; all where there is no list.
    experiments: Option<Vec<String>>,
    /// Unix milliseconds from which on it is refused: expired or revoked.
    ends_at: i64,
    /// Unix milliseconds of about the last use; shared by all readings of one key.
    used_at: Arc<AtomicI64>,
}

impl KnownKey {
    /// Its name.
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Its digest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether it may do what needs `scope`.
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }

    /// Names of the experiments that it is for; `None`: all.
    pub fn experiments(&self) -> Option<&[String]> {
        self.experiments.as_deref()
    }

    /// Whether it is good at this time; notes that it was used.
    pub fn use_at(&self, now_ms: i64) -> bool {
        let good = now_ms < self.ends_at;
        // reading costs nothing where many call at once; writing does
        if good && now_ms - self.used_at.load(Ordering::Relaxed) >= USE_GRAIN_MS {
            self.used_at.store(now_ms, Ordering::Relaxed);
        }
        good
    }
}

/// Keys by digest and by name.
#[derive(Debug, Default)]
pub struct ApiKeySet {
    by_digest: HashMap<Digest, Arc<KnownKey>>,
    by_id: HashMap<KeyId, Arc<KnownKey>>,
}

impl ApiKeySet {
    /// The keys that a server was started with: each may do everything, for ever.
    pub fn of_given(keys: &ApiKeys) -> Self {
        Self::of(keys.iter().map(|(digest, id)| KnownKey {
            id: id.clone(),
            digest: *digest,
            scopes: Scopes::from_iter([Scope::Admin]),
            experiments: None,
            ends_at: i64::MAX,
            used_at: Arc::default(),
        }))
    }

    fn of(keys: impl Iterator<Item = KnownKey>) -> Self {
        let mut ring = Self::default();
        for key in keys.map(Arc::new) {
            ring.by_id.insert(key.id.clone(), Arc::clone(&key));
            ring.by_digest.insert(key.digest, key);
        }
        ring
    }

    /// Whether there is no key, not even one that has ended.
    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// The key with this digest.
    pub fn find(&self, digest: &Digest) -> Option<Arc<KnownKey>> {
        self.by_digest.get(digest).cloned()
    }

    /// The key with this name.
    pub fn named(&self, id: &str) -> Option<Arc<KnownKey>> {
        self.by_id.get(&KeyId::from(id)).cloned()
    }
}

/// The keys of the database as this process knows them.
pub struct AccessKeys {
    store: SharedStore,
    ring: RwLock<Arc<ApiKeySet>>,
    /// Uses that the database has.
    noted: Mutex<HashMap<KeyId, i64>>,
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl AccessKeys {
    /// The keys of `store`.
    pub async fn load(store: SharedStore) -> Result<Self, StoreError> {
        let keys = Self {
            store,
            ring: RwLock::default(),
            noted: Mutex::default(),
            asked: tokio::sync::Mutex::new(None),
        };
        keys.refresh().await?;
        Ok(keys)
    }

    /// The keys as they were last read.
    pub fn ring(&self) -> Arc<ApiKeySet> {
        Arc::clone(&self.ring.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Read the keys again.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let records = self.store.api_keys().await?;
        let before = self.ring();
        let ring = ApiKeySet::of(records.into_iter().map(|record| {
            let id = KeyId::from(&*record.id);
            let noted = record.last_used_at.unwrap_or(i64::MIN / 2);
            let used_at = match before.by_id.get(&id) {
                Some(known) => Arc::clone(&known.used_at),
                None => Arc::new(AtomicI64::new(noted)),
            };
            let ends_at =
                record.expires_at.unwrap_or(i64::MAX).min(record.revoked_at.unwrap_or(i64::MAX));
            KnownKey {
                id,
                digest: record.digest,
                scopes: record.scopes,
                experiments: record.experiments,
                ends_at,
                used_at,
            }
        }));
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ring);
        Ok(())
    }

    /// Read the keys again because a caller presents one that is not known here. Those who come at
    /// once share one reading, which waits until it may be.
    pub async fn refresh_for_unknown(&self) -> Result<(), StoreError> {
        let arrived = Instant::now();
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at >= arrived) {
            return Ok(());
        }
        if let Some(wait) = asked.and_then(|at| ASK_AT_MOST_EVERY.checked_sub(at.elapsed())) {
            tokio::time::sleep(wait).await;
        }
        *asked = Some(Instant::now());
        self.refresh().await
    }

    /// Write the uses that the database does not have yet.
    pub async fn note_uses(&self) -> Result<(), StoreError> {
        let uses: Vec<(KeyId, i64)> = {
            let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            let used = |key: &Arc<KnownKey>| (key.id.clone(), key.used_at.load(Ordering::Relaxed));
            let is_new =
                |(id, at): &(KeyId, i64)| *at > 0 && noted.get(id).is_none_or(|noted| at > noted);
            self.ring().by_id.values().map(used).filter(is_new).collect()
        };
        if !uses.is_empty() {
            let rows: Vec<_> = uses.iter().map(|(id, at)| (id.as_str().to_owned(), *at)).collect();
            self.store.note_key_uses(&rows).await?;
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(uses);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::digest_of;
    use super::*;

    #[test]
    fn each_given_key_is_found_and_named_apart_and_nothing_else_is() {
        let ring = ApiKeySet::of_given(
            &ApiKeys::parse("first-key-0123456789, second-key-0123456789").unwrap(),
        );
        let first = ring.find(&digest_of(b"first-key-0123456789")).unwrap();
        let second = ring.find(&digest_of(b"second-key-0123456789")).unwrap();
        assert_ne!(first.id(), second.id());
        assert!(
            first.allows(Scope::Decide)
                && first.use_at(i64::MAX - 1)
                && first.experiments().is_none()
        );
        assert_eq!(ring.named(first.id().as_str()).unwrap().digest(), first.digest());
        for other in
            [&b""[..], b"first-key-012345678", b"first-key-01234567890", b"first-key-0123456789, "]
        {
            assert!(ring.find(&digest_of(other)).is_none());
        }
    }
}
