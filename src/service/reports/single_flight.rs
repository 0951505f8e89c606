//! A single-flight cache: concurrent requests for the same result share one computation, and one
//! text of it.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;

use super::pool::ReportPool;
use crate::service::error::ServiceError;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// How long a result is kept that nobody asks for. A monitor asks once a minute.
const KEPT: Duration = Duration::from_secs(120);

/// The parameters of a report.
pub(crate) trait Parameters: PartialEq + Copy + Send + Sync + 'static {
    /// Whether a result for `other` is an answer to this, perhaps of an earlier time.
    fn asks_as(&self, other: &Self) -> bool {
        self == other
    }
}

impl Parameters for () {}

/// A ranker.
impl Parameters for usize {}

impl Parameters for Option<usize> {}

/// The newest result of one computation, for the parameters `P`. It stays valid until the log
/// grows.
#[derive(Debug)]
pub(crate) struct SingleFlight<P, T> {
    /// Held while a result is computed.
    turn: Arc<tokio::sync::Mutex<()>>,
    newest: Arc<Mutex<Option<Cached<P, T>>>>,
}

#[derive(Debug)]
struct Cached<P, T> {
    parameters: P,
    result: Arc<Computed<T>>,
    used: Instant,
}

/// The report with these parameters, at the current log position or later: what `compute` makes of
/// the input that `copy` reads. It is computed once for each position, for all callers.
///
/// See [`ReportPool::compute`] for `copy` and `compute`.
pub(crate) async fn newest<P, C, T>(
    pool: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
    parameters: P,
    copy: impl FnOnce(&Fold) -> C + Send + 'static,
    compute: impl FnOnce(&LoadedExperiment, C) -> T + Send + 'static,
) -> Result<Arc<Computed<T>>, ServiceError>
where
    P: Parameters,
    C: Send + 'static,
    T: Send + Sync + 'static,
{
    let asked_at = loaded.fold()?.state().position;
    let (read, of) = (Arc::clone(loaded), Arc::clone(loaded));
    let copy = move || {
        let fold = read.fold()?;
        Ok((fold.state().position, copy(&fold)))
    };
    let compute = move |(position, input)| (position, compute(&of, input));
    let reports = loaded.extensions().get::<SingleFlight<P, T>>();
    reports.get(pool, (asked_at, parameters), copy, compute).await
}

impl<P, T> Default for SingleFlight<P, T> {
    fn default() -> Self {
        Self { turn: Arc::default(), newest: Arc::default() }
    }
}

impl<P, T> SingleFlight<P, T>
where
    P: Parameters,
    T: Send + Sync + 'static,
{
    /// The result at this log position or later: the cached one, or a new one. `compute` makes it,
    /// with its position, from the input that `copy` has read. Concurrent callers wait for the same
    /// computation. It runs to its end even if all callers go, so that none has to start it again.
    ///
    /// If the computation takes too long, or is refused because of the load, the last result is
    /// returned, which is of an earlier time. If there is none, callers wait.
    ///
    /// See [`ReportPool::compute`] for `copy` and `compute`.
    pub async fn get<C: Send + 'static>(
        &self,
        pool: &Arc<ReportPool>,
        (position, parameters): (u64, P),
        copy: impl FnOnce() -> Result<C, ServiceError> + Send + 'static,
        compute: impl FnOnce(C) -> (u64, T) + Send + 'static,
    ) -> Result<Arc<Computed<T>>, ServiceError> {
        if let Some(known) = self.known(position, &parameters) {
            return Ok(known);
        }
        let began = Instant::now();
        let fresh = async {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            // one that came meanwhile is good enough for a caller whose time is up
            let meanwhile = |known: &Cached<P, T>| {
                pool.time_left().is_zero()
                    && known.result.at >= began
                    && parameters.asks_as(&known.parameters)
            };
            let known = self.known(position, &parameters).or_else(|| self.cached(meanwhile));
            if let Some(known) = known {
                return Ok(known);
            }
            let (pool, newest) = (Arc::clone(pool), Arc::clone(&self.newest));
            let computed = tokio::spawn(async move {
                let (position, value) = pool.compute(copy, compute).await?;
                let now = Instant::now();
                let result = Arc::new(Computed { position, value, at: now, json: OnceLock::new() });
                let cached = Cached { parameters, result: Arc::clone(&result), used: now };
                if lock(&newest).replace(cached).is_none() {
                    tokio::spawn(forget_when_unused(Arc::downgrade(&newest)));
                }
                drop(turn);
                Ok(result)
            });
            computed.await.map_err(|error| {
                ServiceError::internal(format!("a report was not computed: {error}"))
            })?
        };
        match self.cached(|known| parameters.asks_as(&known.parameters)) {
            Some(last) => Ok(pool.in_time(fresh).await?.unwrap_or(last)),
            None => fresh.await,
        }
    }

    /// The cached result for these parameters, if it is of this log position or later.
    fn known(&self, position: u64, parameters: &P) -> Option<Arc<Computed<T>>> {
        self.cached(|known| known.result.position >= position && known.parameters == *parameters)
    }

    /// The cached result, if it fits.
    fn cached(&self, fits: impl FnOnce(&Cached<P, T>) -> bool) -> Option<Arc<Computed<T>>> {
        let mut newest = lock(&self.newest);
        let known = newest.as_mut().filter(|known| fits(known))?;
        known.used = Instant::now();
        Some(Arc::clone(&known.result))
    }
}

/// Forget the result once nobody has asked for it for a while. It can take megabytes.
async fn forget_when_unused<P, T>(newest: Weak<Mutex<Option<Cached<P, T>>>>) {
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
    /// The log position of the result.
    pub position: u64,
    value: T,
    at: Instant,
    json: OnceLock<Bytes>,
}

impl<T> Deref for Computed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize> Computed<T> {
    /// The time since the result was computed.
    pub fn age(&self) -> Duration {
        self.at.elapsed()
    }

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
