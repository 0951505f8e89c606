//! A single-flight cache: concurrent requests for the same result share one computation, and one
//! text of it.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;

use super::pool::ReportPool;
use crate::service::error::ServiceError;

/// How long a result is kept that nobody asks for.
const KEPT: Duration = Duration::from_secs(30);

/// The newest result of one computation, under its key. A key has a log position, so a result stays
/// valid until the log grows.
#[derive(Debug)]
pub(crate) struct SingleFlight<K, T> {
    /// Held while a result is computed.
    turn: Arc<tokio::sync::Mutex<()>>,
    newest: Arc<Mutex<Option<Cached<K, T>>>>,
}

#[derive(Debug)]
struct Cached<K, T> {
    key: K,
    result: Arc<Computed<T>>,
    used: Instant,
}

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { turn: Arc::default(), newest: Arc::default() }
    }
}

impl<K: Send + 'static, T: Send + Sync + 'static> SingleFlight<K, T> {
    /// The cached result if its key is `good_enough`. Otherwise the result of `compute`, which also
    /// returns the key, on what `copy` has read. Concurrent callers wait for it. It is computed to
    /// the end, even if they all go, so that none of them starts it again.
    ///
    /// See [`ReportPool::compute`] for `copy` and `compute`.
    pub async fn get<C: Send + 'static>(
        &self,
        pool: &Arc<ReportPool>,
        good_enough: impl Fn(&K) -> bool,
        copy: impl FnOnce() -> Result<C, ServiceError> + Send + 'static,
        compute: impl FnOnce(C) -> Result<(K, T), ServiceError> + Send + 'static,
    ) -> Result<Arc<Computed<T>>, ServiceError> {
        if let Some(known) = self.known(&good_enough) {
            return Ok(known);
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if let Some(known) = self.known(&good_enough) {
            return Ok(known);
        }
        let (pool, newest) = (Arc::clone(pool), Arc::clone(&self.newest));
        let computed = tokio::spawn(async move {
            let (key, value) = pool.compute(copy, compute).await??;
            let result = Arc::new(Computed { value, json: OnceLock::new() });
            let cached = Cached { key, result: Arc::clone(&result), used: Instant::now() };
            if lock(&newest).replace(cached).is_none() {
                tokio::spawn(forget_when_unused(Arc::downgrade(&newest)));
            }
            drop(turn);
            Ok(result)
        });
        computed.await.map_err(|error| {
            ServiceError::internal(format!("a report was not computed: {error}"))
        })?
    }

    /// The cached result if its key is `good_enough`.
    pub fn known(&self, good_enough: impl Fn(&K) -> bool) -> Option<Arc<Computed<T>>> {
        let mut newest = lock(&self.newest);
        let known = newest.as_mut().filter(|known| good_enough(&known.key))?;
        known.used = Instant::now();
        Some(Arc::clone(&known.result))
    }

    /// The newest result.
    pub fn newest(&self) -> Option<Arc<Computed<T>>> {
        lock(&self.newest).as_ref().map(|cached| Arc::clone(&cached.result))
    }
}

/// Forget the result once nobody has asked for it for a while. It can take megabytes.
async fn forget_when_unused<K, T>(newest: Weak<Mutex<Option<Cached<K, T>>>>) {
    loop {
        tokio::time::sleep(KEPT).await;
        let Some(newest) = newest.upgrade() else { return };
        let mut newest = lock(&newest);
        if newest.as_ref().is_none_or(|cached| cached.used.elapsed() >= KEPT) {
            *newest = None;
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // the value is replaced as a whole
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result, and its text once somebody has asked for it.
#[derive(Debug)]
pub struct Computed<T> {
    value: T,
    json: OnceLock<Bytes>,
}

impl<T> Deref for Computed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize> Computed<T> {
    /// The result as JSON, if it is written already.
    pub fn written(&self) -> Option<Bytes> {
        self.json.get().cloned()
    }

    /// The result as JSON, written once. Run this on a thread of the pool.
    pub fn write(&self, pool: &ReportPool) -> Result<Bytes, ServiceError> {
        if let Some(json) = self.written() {
            return Ok(json);
        }
        let json = serde_json::to_vec(&self.value).map_err(|error| {
            ServiceError::internal(format!("a report was not written: {error}"))
        })?;
        let json = pool.hold(json)?;
        Ok(self.json.get_or_init(|| json).clone())
    }
}
