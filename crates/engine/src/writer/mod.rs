//! Group commit. A task appends all events that arrived during the last commit, in one
//! transaction. Another task folds them and then replies to the callers.
//!
//! Each append unit of the store that has events has two such tasks
//! ([`ExperimentLog::append_unit`](rankduel_store::ExperimentLog::append_unit)): all experiments of a
//! plain database have two, and each experiment of a distributed one has its own. A node that hangs
//! delays its own experiments only.

mod commit;
mod groups;
mod submission;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tracing::Instrument as _;

use self::commit::{CommitSettings, Committer};
use self::groups::{COMMITS_AT_ONCE, LANES_AT_ONCE, Unit};
use self::submission::{Capacity, Submission};
use crate::clock::SharedClock;
use crate::error::EngineError;
use crate::loaded::LoadedExperiment;
use crate::metrics::Metrics;
use crate::settings::EngineSettings;
use rankduel_store::{AppendUnit, Appended, NewEvent, SharedStore};

/// Appends events to logs.
#[derive(Clone)]
pub struct Writer {
    commit: CommitSettings,
    /// The queues of the units that have tasks.
    queues: Arc<Mutex<HashMap<AppendUnit, mpsc::UnboundedSender<Submission>>>>,
    /// Permits for commits.
    commits: Arc<Semaphore>,
    /// Permits for commits of experiments whose last commit failed.
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
        let capacity = Capacity::new(settings.queue_events_max, metrics);
        Self {
            commit: CommitSettings { store, clock, capacity, within: settings.commit_within },
            queues: Arc::default(),
            commits: Arc::new(Semaphore::new(COMMITS_AT_ONCE)),
            lanes: Arc::new(Semaphore::new(LANES_AT_ONCE)),
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
        let permits = self.commit.capacity.admit(events.len()).ok_or(EngineError::Overloaded)?;
        let _shared = loaded.appending.read().await;
        self.append_admitted(loaded, events, permits).await
    }

    /// [`Writer::append`] of one event, for a caller that holds [`LoadedExperiment::appending`].
    pub async fn append_alone(
        &self,
        loaded: &Arc<LoadedExperiment>,
        event: NewEvent,
    ) -> Result<Appended, EngineError> {
        let permits = self.commit.capacity.admit(1).ok_or(EngineError::Overloaded)?;
        only(self.append_admitted(loaded, vec![event], permits).await?)
    }

    async fn append_admitted(
        &self,
        loaded: &Arc<LoadedExperiment>,
        events: Vec<NewEvent>,
        _permits: OwnedSemaphorePermit,
    ) -> Result<Vec<Appended>, EngineError> {
        let unit = self.commit.store.append_unit(loaded.id);
        let (reply, answer) = oneshot::channel();
        self.submit(unit, Submission { loaded: Arc::clone(loaded), events, reply, _permits });
        let answer = answer.instrument(tracing::info_span!("append")).await;
        answer.unwrap_or_else(|_| Err(EngineError::Internal("the writer has stopped".into())))
    }

    /// Queue a submission for its unit, whose tasks are started if there are none.
    fn submit(&self, unit: AppendUnit, submission: Submission) {
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
            Arc::clone(&self.commits),
            Arc::clone(&self.lanes),
        );
        tokio::spawn(unit.run(submissions));
    }
}

/// The result of the only event.
pub(crate) fn only(appended: Vec<Appended>) -> Result<Appended, EngineError> {
    let no_result = || EngineError::Internal("the store returned no result".into());
    appended.into_iter().next().ok_or_else(no_result)
}
