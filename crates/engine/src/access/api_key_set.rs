//! API keys and what they allow, in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use super::key::{ApiKeys, Digest, KeyId};
use super::scope::{Scope, Scopes};

/// The time of a key's last use is kept to the minute.
const USE_GRAIN_MS: i64 = 60_000;

/// A key and what it allows.
#[derive(Debug)]
pub struct KnownKey {
    id: KeyId,
    digest: Digest,
    scopes: Scopes,
    /// Names of the experiments that it is valid for; `None`: all.
    experiments: Option<Vec<String>>,
    /// Unix milliseconds from which on it is refused: expired or revoked.
    ends_at: i64,
    usage: Arc<KeyUsage>,
}

/// The use of a key, shared by all reads of the key.
#[derive(Debug, Default)]
pub(super) struct KeyUsage {
    /// Unix milliseconds of about the last use.
    last: AtomicI64,
    /// Number of its requests that run.
    running: AtomicUsize,
}

impl KeyUsage {
    /// Last used at this time, in unix milliseconds.
    pub(super) fn last(at: i64) -> Self {
        Self { last: at.into(), running: AtomicUsize::new(0) }
    }
}

/// A request of a key, counted while it runs.
#[derive(Debug)]
pub struct RunningOfKey(Arc<KeyUsage>);

impl Drop for RunningOfKey {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl KnownKey {
    pub(super) fn new(
        id: KeyId,
        digest: Digest,
        scopes: Scopes,
        experiments: Option<Vec<String>>,
        ends_at: i64,
        usage: Arc<KeyUsage>,
    ) -> Self {
        Self { id, digest, scopes, experiments, ends_at, usage }
    }

    /// The same key, refused at all times.
    pub(super) fn ended(&self) -> Self {
        let (id, experiments) = (self.id.clone(), self.experiments.clone());
        Self::new(id, self.digest, self.scopes, experiments, i64::MIN, self.usage())
    }

    /// Whether it is refused at all times.
    pub(super) fn is_ended(&self) -> bool {
        self.ends_at == i64::MIN
    }

    /// Its name.
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Its digest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether it allows an action that needs `scope`.
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }

    /// Names of the experiments that it is valid for; `None`: all.
    pub fn experiments(&self) -> Option<&[String]> {
        self.experiments.as_deref()
    }

    /// Whether it is valid at this time.
    pub fn is_valid_at(&self, now_ms: i64) -> bool {
        now_ms < self.ends_at
    }

    /// Whether it is valid at this time. Records the use.
    pub fn use_at(&self, now_ms: i64) -> bool {
        let valid = self.is_valid_at(now_ms);
        // concurrent reads are cheap; concurrent writes are not
        if valid && now_ms - self.usage.last.load(Ordering::Relaxed) >= USE_GRAIN_MS {
            self.usage.last.store(now_ms, Ordering::Relaxed);
        }
        valid
    }

    /// Count a request while it runs; `None` if `most` of this key run already.
    pub fn begin_request(&self, most: usize) -> Option<RunningOfKey> {
        let running = RunningOfKey(self.usage());
        let before = self.usage.running.fetch_add(1, Ordering::Relaxed);
        (before < most).then_some(running)
    }

    pub(super) fn used_at(&self) -> i64 {
        self.usage.last.load(Ordering::Relaxed)
    }

    pub(super) fn usage(&self) -> Arc<KeyUsage> {
        Arc::clone(&self.usage)
    }
}

/// Keys by digest and by name.
#[derive(Debug, Default)]
pub struct ApiKeySet {
    by_digest: HashMap<Digest, Arc<KnownKey>>,
    by_id: HashMap<KeyId, Arc<KnownKey>>,
}

impl FromIterator<KnownKey> for ApiKeySet {
    fn from_iter<I: IntoIterator<Item = KnownKey>>(keys: I) -> Self {
        Self::default().with(keys)
    }
}

impl ApiKeySet {
    /// This set with further keys.
    pub(super) fn with(mut self, keys: impl IntoIterator<Item = KnownKey>) -> Self {
        for key in keys.into_iter().map(Arc::new) {
            self.by_id.insert(key.id.clone(), Arc::clone(&key));
            self.by_digest.insert(key.digest, key);
        }
        self
    }

    /// The keys that a server was started with: each allows everything and never expires.
    pub fn of_given(keys: &ApiKeys) -> Self {
        let known = |(digest, id): &(Digest, KeyId)| {
            let scopes = Scopes::from_iter([Scope::Admin]);
            KnownKey::new(id.clone(), *digest, scopes, None, i64::MAX, Arc::default())
        };
        keys.iter().map(known).collect()
    }

    /// Whether the set has no keys, not even expired or revoked ones.
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &KnownKey> {
        self.by_id.values().map(|key| &**key)
    }
}
