//! Group commit. One task appends all events that arrived during the last commit, in one
//! transaction. Another task folds them and then replies to the callers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::clock::SharedClock;
use crate::engine::error::EngineError;
use crate::engine::loaded::LoadedExperiment;
use crate::engine::settings::EngineSettings;
use crate::store::{Appended, ExperimentId, LogEntry, NewEvent, SharedStore, StoreError};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::trace;

/// Most events of one commit. Further events wait for the next one.
const COMMIT_EVENTS_MAX: usize = 10_000;

/// Appends events to logs.
#[derive(Clone)]
pub struct Writer {
    queue: mpsc::UnboundedSender<Submission>,
    capacity: Capacity,
}

/// Capacity of the queue: one permit for each event.
#[derive(Clone)]
struct Capacity {
    permits: Arc<Semaphore>,
    events_max: usize,
    metrics: Arc<Metrics>,
}

impl Capacity {
    fn measure(&self) {
        self.metrics.queue_events.set((self.events_max - self.permits.available_permits()) as i64);
    }
}

struct Submission {
    loaded: Arc<LoadedExperiment>,
    events: Vec<NewEvent>,
    reply: oneshot::Sender<Result<Vec<Appended>, EngineError>>,
    _permits: OwnedSemaphorePermit,
}

impl Writer {
    /// Start the tasks. They end when the writer is dropped.
    pub fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: &EngineSettings,
    ) -> Self {
        let (queue, submissions) = mpsc::unbounded_channel();
        let events_max = settings.queue_events_max.min(Semaphore::MAX_PERMITS);
        let capacity =
            Capacity { permits: Arc::new(Semaphore::new(events_max)), events_max, metrics };
        tokio::spawn(run(store, clock, capacity.clone(), settings.commit_within, submissions));
        Self { queue, capacity }
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
        let _part = trace::part("append");
        let wanted = u32::try_from(events.len()).map_err(|_| EngineError::Overloaded)?;
        let permits = Arc::clone(&self.capacity.permits)
            .try_acquire_many_owned(wanted)
            .map_err(|_| EngineError::Overloaded)?;
        self.capacity.measure();
        let (reply, answer) = oneshot::channel();
        let submission =
            Submission { loaded: Arc::clone(loaded), events, reply, _permits: permits };
        let stopped = || EngineError::Internal("the writer has stopped".into());
        self.queue.send(submission).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

async fn run(
    store: SharedStore,
    clock: SharedClock,
    capacity: Capacity,
    within: Duration,
    mut submissions: mpsc::UnboundedReceiver<Submission>,
) {
    // one commit is folded during the next one
    let (committed, folding) = mpsc::channel(1);
    tokio::spawn(fold(Arc::clone(&store), within, Arc::clone(&capacity.metrics), folding));
    let mut held_over = None;
    loop {
        let first = match held_over.take() {
            Some(submission) => submission,
            None => match submissions.recv().await {
                Some(submission) => submission,
                None => return,
            },
        };
        let mut size = first.events.len();
        let mut group = vec![first];
        while let Ok(next) = submissions.try_recv() {
            if size + next.events.len() > COMMIT_EVENTS_MAX {
                held_over = Some(next);
                break;
            }
            size += next.events.len();
            group.push(next);
        }
        if let Some(commit) = commit(&store, clock.now_ms(), within, &capacity.metrics, group).await
            && committed.send(commit).await.is_err()
        {
            tracing::error!("the task that folds commits has stopped");
        }
        capacity.measure();
    }
}

/// A caller that waits until its events are durable and folded.
struct Waiting {
    loaded: Arc<LoadedExperiment>,
    /// How many events of the commit are its own.
    events: usize,
    /// Position of the fold before the commit.
    position: u64,
    reply: oneshot::Sender<Result<Vec<Appended>, EngineError>>,
    _permits: OwnedSemaphorePermit,
}

/// Events that are durable and not folded yet, in the order of the callers that wait for them.
struct Commit {
    events: Vec<(ExperimentId, NewEvent)>,
    appended: Vec<Appended>,
    recorded_at: i64,
    waiting: Vec<Waiting>,
}

/// Append a group of submissions. On failure, replies to the callers and returns `None`.
async fn commit(
    store: &SharedStore,
    now_ms: i64,
    within: Duration,
    metrics: &Metrics,
    group: Vec<Submission>,
) -> Option<Commit> {
    let (mut events, mut waiting) = (Vec::new(), Vec::with_capacity(group.len()));
    for Submission { loaded, events: own, reply, _permits } in group {
        let count = own.len();
        events.extend(own.into_iter().map(|event| (loaded.id, event)));
        let position = loaded.position();
        waiting.push(Waiting { loaded, events: count, position, reply, _permits });
    }
    let started = Instant::now();
    let result = match tokio::time::timeout(within, store.append(&events, now_ms)).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Slow(within)),
    };
    match result {
        Ok(appended) => {
            metrics.commit_events.observe(events.len() as f64);
            metrics.commit_duration_seconds.observe(started.elapsed().as_secs_f64());
            Some(Commit { events, appended, recorded_at: now_ms, waiting })
        }
        Err(error) => {
            metrics.commit_failures.inc();
            tracing::error!(%error, events = events.len(), "commit failed");
            let error = Arc::new(error);
            for waiting in waiting {
                let _ = waiting.reply.send(Err(EngineError::Store(Arc::clone(&error))));
            }
            None
        }
    }
}

/// Fold one commit after the other, and reply to the callers.
async fn fold(
    store: SharedStore,
    within: Duration,
    metrics: Arc<Metrics>,
    mut commits: mpsc::Receiver<Commit>,
) {
    while let Some(Commit { events, appended, recorded_at, waiting }) = commits.recv().await {
        fold_committed(&store, within, &metrics, &waiting, events, &appended, recorded_at).await;
        let mut appended = appended.into_iter();
        for waiting in waiting {
            let own = appended.by_ref().take(waiting.events).collect();
            // the caller may have given up; its events stay in the log
            let _ = waiting.reply.send(Ok(own));
        }
    }
}

/// Fold the recorded events of a commit, experiment by experiment in log order.
async fn fold_committed(
    store: &SharedStore,
    within: Duration,
    metrics: &Metrics,
    waiting: &[Waiting],
    events: Vec<(ExperimentId, NewEvent)>,
    appended: &[Appended],
    recorded_at: i64,
) {
    let mut recorded: HashMap<_, Vec<LogEntry>> = HashMap::new();
    for ((experiment, NewEvent { nonce, event, .. }), result) in events.into_iter().zip(appended) {
        if let Appended::Recorded(position) = *result {
            let entry = LogEntry { position, nonce, recorded_at, event };
            recorded.entry(experiment).or_default().push(entry);
        }
    }
    for Waiting { loaded, position, .. } in waiting {
        // the first submission of each experiment takes its entries
        let Some(entries) = recorded.remove(&loaded.id) else { continue };
        // the commit must follow what was folded before it
        if let Some(first) = entries.first()
            && first.position <= *position
        {
            loaded.report_log_regression(metrics, first.position - 1, *position);
            continue;
        }
        let folded = match loaded.absorb_off_worker(entries).await {
            Ok(true) => Ok(()),
            // another process appended in between; a store that hangs must not stop the writer
            Ok(false) => match tokio::time::timeout(within, loaded.catch_up(&**store)).await {
                Ok(caught_up) => caught_up,
                Err(_) => Err(StoreError::Slow(within).into()),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = folded {
            // it is durable and therefore acknowledged; replication folds it later
            tracing::error!(%error, experiment = loaded.name, "an appended outcome could not be folded yet");
        }
    }
}
