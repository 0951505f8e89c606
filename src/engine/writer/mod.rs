//! Group commit. A task appends all events that arrived during the last commit, in one
//! transaction. Another task folds them and then replies to the callers.
//!
//! Each append unit of the store that has events has two such tasks
//! ([`ExperimentLog::append_unit`](crate::store::ExperimentLog::append_unit)): all experiments of a
//! plain database have two, and each experiment of a distributed one has its own. A database or a
//! node that hangs delays its own experiments only.

mod commit;
mod groups;
mod submission;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot};

use self::commit::{CommitSettings, Committer};
use self::groups::{COMMITS_AT_ONCE, LANES_AT_ONCE, Unit};
use self::submission::{Capacity, Submission};
use crate::clock::SharedClock;
use crate::engine::error::EngineError;
use crate::engine::loaded::LoadedExperiment;
use crate::engine::settings::EngineSettings;
use crate::store::{AppendUnit, Appended, NewEvent, SharedStore};
use crate::telemetry::metrics::Metrics;

/// Events of an experiment that moves to another database wait for it for this long.
const MOVING_FOR: Duration = Duration::from_secs(3);
/// How often they try again.
const MOVING_RETRY: Duration = Duration::from_millis(50);

/// Appends events to logs.
#[derive(Clone)]
pub struct Writer {
    commit: CommitSettings,
    /// The queues of the units that have tasks.
    queues: Arc<Mutex<HashMap<AppendUnit, mpsc::UnboundedSender<Submission>>>>,
    /// What each database can do at the same time.
    limits: Arc<[Limits]>,
}

/// What one database can do at the same time.
struct Limits {
    /// Commits.
    commits: Arc<Semaphore>,
    /// Commits of experiments whose last commit failed.
    lanes: Arc<Semaphore>,
}

impl Writer {
    /// A writer. Its tasks start with the first events.
    pub fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: &EngineSettings,
    ) -> Self {
        let databases = store.databases();
        let capacity = Capacity::new(databases, settings.queue_events_max, metrics);
        let limits = |_| Limits {
            commits: Arc::new(Semaphore::new(COMMITS_AT_ONCE)),
            lanes: Arc::new(Semaphore::new(LANES_AT_ONCE)),
        };
        Self {
            commit: CommitSettings { store, clock, capacity, within: settings.commit_within },
            queues: Arc::default(),
            limits: (0..databases).map(limits).collect(),
        }
    }

    /// Append `events` to the log of one experiment. Returns when they are durable and folded.
    pub async fn append(
        &self,
        loaded: &Arc<LoadedExperiment>,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Appended>, EngineError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        if self.limits.len() == 1 {
            return self.append_once(loaded, events).await;
        }
        let started = Instant::now();
        loop {
            match self.append_once(loaded, events.clone()).await {
                Err(EngineError::Moving(_)) if started.elapsed() < MOVING_FOR => {
                    tokio::time::sleep(MOVING_RETRY).await;
                }
                done => return done,
            }
        }
    }

    async fn append_once(
        &self,
        loaded: &Arc<LoadedExperiment>,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Appended>, EngineError> {
        let unit = self.commit.store.append_unit(loaded.id);
        let permits = self.commit.capacity.admit(unit.database, events.len());
        let _permits = permits.ok_or(EngineError::Overloaded)?;
        let (reply, answer) = oneshot::channel();
        self.submit(unit, Submission { loaded: Arc::clone(loaded), events, reply, _permits });
        answer.await.unwrap_or_else(|_| Err(EngineError::Internal("the writer has stopped".into())))
    }

    /// Queue a submission for its unit, whose tasks are started if there are none.
    fn submit(&self, unit: AppendUnit, submission: Submission) {
        let Some(limits) = self.limits.get(unit.database) else { return };
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let submission = match queues.get(&unit) {
            None => submission,
            Some(queue) => match queue.send(submission) {
                Ok(()) => return,
                // the task was idle and has ended
                Err(mpsc::error::SendError(submission)) => submission,
            },
        };
        let (queue, submissions) = mpsc::unbounded_channel();
        // cannot fail: the receiver is in this function
        let _ = queue.send(submission);
        if queues.len() == queues.capacity() {
            queues.retain(|_, queue| !queue.is_closed());
        }
        queues.insert(unit, queue);
        let unit = Unit::new(
            Committer::start(self.commit.clone()),
            Arc::clone(&limits.commits),
            Arc::clone(&limits.lanes),
        );
        tokio::spawn(unit.run(submissions));
    }
}
