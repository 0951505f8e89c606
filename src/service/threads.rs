//! Threads for work that takes long.
//!
//! On the threads that serve requests, or on as many others as there are callers, long work would
//! hold up the duels. Here it has a few threads and a queue with a bound. The owners of waiting
//! jobs take turns: a caller with many connections gets the share of one.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::service::error::ServiceError;
use rankduel_engine::access::KeyId;
use rankduel_engine::error::EngineError;

/// Jobs of one owner that may wait for a thread. Further ones are refused.
const QUEUE: usize = 512;
/// Work up to this time runs where its request is served. The work of a page of ten takes 20 µs,
/// that of a hundred 100 µs. With 32 connections whose requests take this long, two processors let
/// others wait for 0.8 ms.
const SHORT: Duration = Duration::from_micros(50);
/// Added to the niceness of the process: a tenth of the weight of the other threads.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The key of the request that a job belongs to; `None` in the background and without keys.
type Owner = Option<KeyId>;

tokio::task_local! {
    static REQUEST: (Owner, Instant);
}

/// Run `future`, which is a request; the jobs that it waits for belong to `owner`.
pub(crate) async fn owned_by<F: Future>(owner: Owner, future: F) -> F::Output {
    REQUEST.scope((owner, Instant::now()), future).await
}

/// How long this request has run; in the background, no time.
pub(crate) fn running_for() -> Duration {
    REQUEST.try_with(|(_, began)| began.elapsed()).unwrap_or_default()
}

/// Whether work that is estimated to take this long is too long for a thread that serves requests.
pub(crate) fn is_long(nanoseconds: usize) -> bool {
    nanoseconds as u128 > SHORT.as_nanos()
}

type Job = Box<dyn FnOnce() + Send>;

/// Whether the caller of a job still waits for its result. Asking is cheap.
pub(crate) type IsAwaited<'a> = &'a dyn Fn() -> bool;

/// Do `work`, which holds a lock or should not wait for others, on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ServiceError::internal(format!("work of a request was not done: {error}")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// That of the threads that serve requests, for work that takes locks which those need.
    /// Threads for a quarter of the processors.
    Normal,
    /// Lower than theirs, for work that takes no such lock. Threads for half of the processors.
    Low,
}

#[derive(Debug)]
pub struct WorkThreads {
    queue: Arc<Queue>,
    count: usize,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: HashMap<Owner, VecDeque<Job>>,
    /// The owners of waiting jobs, each once.
    turns: VecDeque<Owner>,
    has_ended: bool,
}

impl WorkThreads {
    /// Threads that are called `name-0`, `name-1` and so on.
    pub(crate) fn start(name: &str, priority: Priority) -> Result<Self, ServiceError> {
        let processors_each = if priority == Priority::Low { 2 } else { 4 };
        let count = std::thread::available_parallelism()
            .map_or(1, |cores| cores.get().div_ceil(processors_each));
        Self::start_some(name, priority, count)
    }

    fn start_some(name: &str, priority: Priority, count: usize) -> Result<Self, ServiceError> {
        let queue = Arc::<Queue>::default();
        for number in 0..count {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || run_jobs(&queue, priority))
                .map_err(|error| ServiceError::internal(format!("no threads: {error}")))?;
        }
        Ok(Self { queue, count })
    }

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
        let owner = REQUEST.try_with(|(owner, _)| owner.clone()).unwrap_or_default();
        if !self.queue.push(owner, job) {
            return Err(EngineError::Overloaded.into());
        }
        result
            .await
            .map_err(|_| ServiceError::internal("work of a request was not done: it panicked"))
    }
}

impl Drop for WorkThreads {
    fn drop(&mut self) {
        self.queue.lock().has_ended = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    /// Let a job wait for its turn; `false` if too many of this owner wait already.
    fn push(&self, owner: Owner, job: Job) -> bool {
        let mut waiting = self.lock();
        let Waiting { jobs, turns, .. } = &mut *waiting;
        let own = jobs.entry(owner.clone()).or_default();
        if own.len() >= QUEUE {
            return false;
        }
        if own.is_empty() {
            turns.push_back(owner);
        }
        own.push_back(job);
        drop(waiting);
        self.changed.notify_one();
        true
    }

    /// The next job; `None` after the end.
    fn pop(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            let Waiting { jobs, turns, has_ended } = &mut *waiting;
            if let Some(owner) = turns.pop_front() {
                let own = jobs.get_mut(&owner)?;
                let job = own.pop_front();
                if own.is_empty() {
                    jobs.remove(&owner);
                } else {
                    turns.push_back(owner);
                }
                return job;
            }
            if *has_ended {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No job runs under the lock, so a poisoned one is safe to use.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

/// Run jobs until the queue ends.
fn run_jobs(queue: &Queue, priority: Priority) {
    // On Linux, this is the priority of the calling thread alone.
    #[cfg(target_os = "linux")]
    if priority == Priority::Low
        && let Err(error) = rustix::process::nice(NICENESS)
    {
        tracing::debug!(%error, "long work runs at the priority of the other threads");
    }
    while let Some(job) = queue.pop() {
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
        let threads = WorkThreads::start("test", Priority::Low).expect("threads");
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

    #[tokio::test]
    async fn owners_take_turns_and_each_has_a_bound() {
        let threads = WorkThreads::start_some("test", Priority::Low, 1).expect("threads");
        let order = Arc::new(Mutex::new(Vec::new()));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let keys = ["a", "b"]
            .map(|name| Some(KeyId::of(&rankduel_engine::access::digest_of(name.as_bytes()))));
        let note = |who: &'static str| {
            let order = Arc::clone(&order);
            threads.run(move || order.lock().expect("no panic").push(who))
        };
        let first = threads.run(move || held.recv().is_ok());
        let many = owned_by(keys[0].clone(), async {
            futures_util::future::join_all((0..=QUEUE).map(|_| note("many"))).await
        });
        let few = owned_by(keys[1].clone(), async { tokio::join!(note("few"), note("few")) });
        let release = async { release.send(()).is_ok() };
        let (first, many, few, _) = tokio::join!(first, many, few, release);
        assert!(first.is_ok_and(|released| released));
        assert_eq!(many.iter().filter(|result| result.is_err()).count(), 1);
        assert!(few.0.is_ok() && few.1.is_ok());
        assert_eq!(order.lock().expect("no panic")[..5], ["many", "few", "many", "few", "many"]);
    }
}
