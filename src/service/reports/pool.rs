//! The threads that compute reports, and the memory that written reports may take.
//!
//! The work of a report grows with the number of rankers, so it has
//! [threads of its own](crate::service::threads).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::error::ServiceError;
use crate::service::threads::{Priority, WorkThreads, blocking, running_for};
use rankduel_engine::error::EngineError;

/// The unit in which the memory of written reports is counted.
const UNIT_BYTES: usize = 1024;

/// Threads for reports.
#[derive(Debug)]
pub struct ReportPool {
    pub threads: WorkThreads,
    /// Permits: one for each computation whose input is in memory.
    inputs: Semaphore,
    /// Permits: one for each read of folds. Reads are short, and do not wait for computations.
    reads: Semaphore,
    /// Permits: one for each [`UNIT_BYTES`] of a written report in memory.
    written: Arc<Semaphore>,
    /// The last result of a report is good enough for a request that has run for this long.
    fresh_within: Duration,
}

impl ReportPool {
    /// Threads for half of the processors, and this much memory for what they write.
    pub fn start(written_bytes: usize, fresh_within: Duration) -> Result<Self, ServiceError> {
        let threads = WorkThreads::start("report", Priority::Low)?;
        let units = (written_bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS);
        let written = Arc::new(Semaphore::new(units));
        let inputs = Semaphore::new(threads.count() + 1);
        let reads = Semaphore::new(threads.count() + 1);
        Ok(Self { threads, inputs, reads, written, fresh_within })
    }

    /// How long a request still waits for what is new.
    pub fn time_left(&self) -> Duration {
        self.fresh_within.saturating_sub(running_for())
    }

    /// The result of `work`, unless the threads are too slow or have too much to do. All that one
    /// request waits for has one time limit together.
    pub async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<Option<T>, ServiceError> {
        let done = match self.time_left() {
            Duration::ZERO => work.now_or_never(),
            left => tokio::time::timeout(left, work).await.ok(),
        };
        match done {
            None | Some(Err(ServiceError::Engine(EngineError::Overloaded))) => Ok(None),
            Some(done) => done.map(Some),
        }
    }

    /// Run `compute` on what `copy` has read. Few inputs are in memory at once, however many
    /// callers there are.
    ///
    /// `copy` holds the lock of a fold and runs on a thread of normal priority: a lock held by one
    /// of low priority would hold up the duels. It must be short.
    pub async fn compute<C: Send + 'static, T: Send + 'static>(
        &self,
        copy: impl FnOnce() -> Result<C, ServiceError> + Send + 'static,
        compute: impl FnOnce(C) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        // The semaphore is never closed.
        let _input = self.inputs.acquire().await;
        let copied = blocking(copy).await??;
        self.threads.run(move || compute(copied)).await
    }

    /// Run `read`, which holds locks of folds, on a thread of normal priority. Few run at once.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        // The semaphore is never closed.
        let _read = self.reads.acquire().await;
        blocking(read).await
    }

    /// `text` as bytes that count against the memory for written reports while any copy of them is
    /// there. An error if all written reports together would take too much.
    pub fn hold(&self, text: Vec<u8>) -> Result<Bytes, ServiceError> {
        let units = u32::try_from(text.len().div_ceil(UNIT_BYTES)).ok();
        let permit =
            units.and_then(|units| Arc::clone(&self.written).try_acquire_many_owned(units).ok());
        let permit = permit.ok_or(EngineError::Overloaded)?;
        Ok(Bytes::from_owner(Held { text, _permit: permit }))
    }
}

struct Held {
    text: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
