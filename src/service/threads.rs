//! Threads for long work that needs no lock.
//!
//! On the threads that serve requests, or on as many others as there are callers, long work would
//! hold up the duels. Here it has a few threads, which run at a lower priority than the rest of the
//! program, and a queue with a bound.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::service::error::ServiceError;
use rankduel_engine::error::EngineError;

/// Jobs that may wait for a thread. Further ones are refused.
const QUEUE: usize = 1024;
/// Added to the niceness of the process: a tenth of the weight of the other threads.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// Whether the caller of a job still waits for its result. Asking is cheap.
pub(crate) type IsAwaited<'a> = &'a dyn Fn() -> bool;

/// A few threads of low priority.
#[derive(Debug)]
pub struct LowPriorityThreads {
    jobs: SyncSender<Job>,
    count: usize,
}

impl LowPriorityThreads {
    /// Threads for half of the processors, called `name-0`, `name-1` and so on.
    pub fn start(name: &str) -> std::io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        let (jobs, waiting) = sync_channel(QUEUE);
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..count {
            let waiting = Arc::clone(&waiting);
            std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || work(&waiting))?;
        }
        Ok(Self { jobs, count })
    }

    /// Number of threads.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Run `job` on one of the threads. A job whose caller has gone is not run.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        self.run_awaited(|_| job()).await
    }

    /// As [`Self::run`], for a long job that asks from time to time whether its caller still waits.
    /// If not, it should return soon: nobody gets its result.
    pub(crate) async fn run_awaited<T: Send + 'static>(
        &self,
        job: impl FnOnce(IsAwaited<'_>) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !done.is_closed() {
                let result = job(&|| !done.is_closed());
                // The caller may have gone since.
                drop(done.send(result));
            }
        });
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => EngineError::Overloaded,
            TrySendError::Disconnected(_) => EngineError::Internal("the threads ended".into()),
        })?;
        result
            .await
            .map_err(|_| ServiceError::internal("work of a request was not done: it panicked"))
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    // On Linux, this is the priority of the calling thread alone.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "long work runs at the priority of the other threads");
    }
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // The sender ends with the service.
        let Ok(job) = job else { return };
        // The panic hook has logged the panic, and the caller gets an error: the job's channel is
        // dropped.
        drop(catch_unwind(AssertUnwindSafe(job)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_job_learns_that_its_caller_has_gone() {
        let threads = LowPriorityThreads::start("test").expect("threads");
        let (has_begun, begun) = oneshot::channel();
        let (has_ended, ended) = oneshot::channel();
        let caller = tokio::spawn(async move {
            let job = move |is_awaited: IsAwaited<'_>| {
                assert!(has_begun.send(is_awaited()).is_ok());
                while is_awaited() {
                    std::thread::yield_now();
                }
                assert!(has_ended.send(()).is_ok());
            };
            threads.run_awaited(job).await
        });
        assert_eq!(begun.await, Ok(true));
        caller.abort();
        assert_eq!(ended.await, Ok(()));
    }
}
