//! Group commit. One task appends all events that arrived during the last commit, in one
//! transaction. Another task folds them and then replies to the callers.
//!
//! An experiment whose row is locked, or whose part of a distributed database is down, must not
//! fail the others. After a failed commit, each of its experiments has a lane of its own: a task
//! that commits for this experiment alone, until that succeeds.
//!
//! Each database has a writer with tasks and a queue of its own, so that one which is slow or down
//! delays none of the others.

use std::collections::{BTreeMap, HashMap};
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

/// Lanes that commit at the same time. Fewer than the connections of a store that append, so that
/// lanes which wait for a lock leave one to the others.
const LANES_AT_ONCE: usize = 2;

/// Events of an experiment that moves to another database wait for it for this long.
const MOVING_FOR: Duration = Duration::from_secs(3);
/// How often they try again.
const MOVING_RETRY: Duration = Duration::from_millis(50);

/// Appends events to logs.
#[derive(Clone)]
pub struct Writer {
    store: SharedStore,
    /// One for each database.
    queues: Vec<mpsc::UnboundedSender<Submission>>,
    capacity: Capacity,
}

/// Capacity of the queues: one permit for each event.
#[derive(Clone)]
struct Capacity {
    permits: Arc<[Arc<Semaphore>]>,
    events_max: usize,
    metrics: Arc<Metrics>,
}

impl Capacity {
    fn measure(&self) {
        let free: usize = self.permits.iter().map(|permits| permits.available_permits()).sum();
        let most = self.events_max * self.permits.len();
        self.metrics.queue_events.set((most - free) as i64);
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
        let events_max = settings.queue_events_max.min(Semaphore::MAX_PERMITS);
        let permits = (0..store.databases()).map(|_| Arc::new(Semaphore::new(events_max)));
        let capacity = Capacity { permits: permits.collect(), events_max, metrics };
        let within = settings.commit_within;
        let start_queue = |_| {
            let (queue, submissions) = mpsc::unbounded_channel();
            // a commit is folded while the next one is written
            let (committed, folding) = mpsc::channel(1);
            let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
            tokio::spawn(fold(Arc::clone(&store), within, Arc::clone(&capacity.metrics), folding));
            let capacity = capacity.clone();
            tokio::spawn(run(Committer { store, clock, capacity, within, committed }, submissions));
            queue
        };
        let queues = (0..store.databases()).map(start_queue).collect();
        Self { store, queues, capacity }
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
        if self.queues.len() == 1 {
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
        let database = self.store.database_of(loaded.id);
        let wanted = u32::try_from(events.len()).map_err(|_| EngineError::Overloaded)?;
        let permits = Arc::clone(&self.capacity.permits[database])
            .try_acquire_many_owned(wanted)
            .map_err(|_| EngineError::Overloaded)?;
        self.capacity.measure();
        let (reply, answer) = oneshot::channel();
        let submission =
            Submission { loaded: Arc::clone(loaded), events, reply, _permits: permits };
        let stopped = || EngineError::Internal("the writer has stopped".into());
        self.queues[database].send(submission).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

/// Commits groups until the writer is dropped.
async fn run(committer: Committer, mut submissions: mpsc::UnboundedReceiver<Submission>) {
    let mut lanes = Lanes::default();
    let mut gathering = Gathering::default();
    while let Some(group) =
        gathering.next(&mut submissions, |submission| lanes.pass_on(submission)).await
    {
        if let Err(failed) = committer.commit(group).await {
            failed.into_iter().for_each(|(id, part)| lanes.open(&committer, id, part));
        }
    }
}

/// Gathers groups of submissions.
#[derive(Default)]
struct Gathering {
    /// A submission that was too large for the last group.
    held_over: Option<Submission>,
}

impl Gathering {
    /// Wait for a submission, and add all others that have arrived. `pass_on` takes those that
    /// belong elsewhere. The group may be empty. `None`: there will be no more.
    async fn next(
        &mut self,
        submissions: &mut mpsc::UnboundedReceiver<Submission>,
        mut pass_on: impl FnMut(Submission) -> Option<Submission>,
    ) -> Option<Vec<Submission>> {
        let mut next = match self.held_over.take() {
            Some(submission) => submission,
            None => submissions.recv().await?,
        };
        let (mut group, mut size) = (Vec::new(), 0);
        loop {
            if let Some(submission) = pass_on(next) {
                if !group.is_empty() && size + submission.events.len() > COMMIT_EVENTS_MAX {
                    self.held_over = Some(submission);
                    break;
                }
                size += submission.events.len();
                group.push(submission);
            }
            match submissions.try_recv() {
                Ok(submission) => next = submission,
                Err(_) => break,
            }
        }
        Some(group)
    }
}

/// The lanes of experiments whose last commit failed.
struct Lanes {
    queues: HashMap<ExperimentId, mpsc::UnboundedSender<Submission>>,
    permits: Arc<Semaphore>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { queues: HashMap::new(), permits: Arc::new(Semaphore::new(LANES_AT_ONCE)) }
    }
}

impl Lanes {
    /// Pass a submission on to its experiment's lane; returns it if there is none.
    fn pass_on(&mut self, submission: Submission) -> Option<Submission> {
        let id = submission.loaded.id;
        let Some(queue) = self.queues.get(&id) else { return Some(submission) };
        let mpsc::error::SendError(submission) = queue.send(submission).err()?;
        // the lane has succeeded and ended
        self.queues.remove(&id);
        Some(submission)
    }

    /// Open a lane for an experiment, with these submissions to begin with.
    fn open(&mut self, committer: &Committer, id: ExperimentId, waiting: Vec<Submission>) {
        let (queue, submissions) = mpsc::unbounded_channel();
        for submission in waiting {
            // cannot fail: the receiver is in this function
            let _ = queue.send(submission);
        }
        self.queues.insert(id, queue);
        tokio::spawn(run_lane(committer.clone(), Arc::clone(&self.permits), submissions));
    }
}

/// Commits the submissions of one experiment. After a success, the queue is closed, and further
/// submissions go to the common groups again.
async fn run_lane(
    committer: Committer,
    permits: Arc<Semaphore>,
    mut submissions: mpsc::UnboundedReceiver<Submission>,
) {
    let mut gathering = Gathering::default();
    while let Some(group) = gathering.next(&mut submissions, Some).await {
        let permit = permits.acquire().await;
        if committer.commit(group).await.is_ok() {
            submissions.close();
        }
        drop(permit);
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

/// Appends groups of submissions, and hands them on to be folded.
#[derive(Clone)]
struct Committer {
    store: SharedStore,
    clock: SharedClock,
    capacity: Capacity,
    within: Duration,
    committed: mpsc::Sender<Commit>,
}

/// The experiments of a failed commit, with the submissions that are to be tried again.
type Failed = BTreeMap<ExperimentId, Vec<Submission>>;

impl Committer {
    /// Append a group. A group of one experiment fails for good: its callers get the error. Other
    /// groups can be tried again, experiment by experiment, if the database refused the group; if
    /// it does not answer, their time is up.
    async fn commit(&self, group: Vec<Submission>) -> Result<(), Failed> {
        if group.is_empty() {
            return Ok(());
        }
        let now_ms = self.clock.now_ms();
        let (mut events, mut waiting) = (Vec::new(), Vec::with_capacity(group.len()));
        for Submission { loaded, events: own, reply, _permits } in group {
            let count = own.len();
            events.extend(own.into_iter().map(|event| (loaded.id, event)));
            let position = loaded.position();
            waiting.push(Waiting { loaded, events: count, position, reply, _permits });
        }
        let metrics = &self.capacity.metrics;
        let started = Instant::now();
        let appending = self.store.append(&events, now_ms);
        let result = match tokio::time::timeout(self.within, appending).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Slow(self.within)),
        };
        let committed = match result {
            Ok(appended) => {
                metrics.commit_events.observe(events.len() as f64);
                metrics.commit_duration_seconds.observe(started.elapsed().as_secs_f64());
                let commit = Commit { events, appended, recorded_at: now_ms, waiting };
                if self.committed.send(commit).await.is_err() {
                    tracing::error!("the task that folds commits has stopped");
                }
                Ok(())
            }
            Err(error) => {
                metrics.commit_failures.inc();
                tracing::error!(%error, events = events.len(), "commit failed");
                Err(failed(error, events, waiting))
            }
        };
        self.capacity.measure();
        committed
    }
}

/// The parts of a failed commit. The callers get `error` if trying again is pointless: the parts
/// have no submissions then.
fn failed(
    error: StoreError,
    events: Vec<(ExperimentId, NewEvent)>,
    waiting: Vec<Waiting>,
) -> Failed {
    let mut parts = Failed::new();
    for waiting in &waiting {
        parts.entry(waiting.loaded.id).or_default();
    }
    if parts.len() == 1 || !error.is_answer() {
        let error = Arc::new(error);
        for waiting in waiting {
            let _ = waiting.reply.send(Err(EngineError::Store(Arc::clone(&error))));
        }
        return parts;
    }
    let mut events = events.into_iter().map(|(_, event)| event);
    for Waiting { loaded, events: count, reply, _permits, .. } in waiting {
        let events = events.by_ref().take(count).collect();
        let part = parts.entry(loaded.id).or_default();
        part.push(Submission { loaded, events, reply, _permits });
    }
    parts
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
            let own: Vec<_> = appended.by_ref().take(waiting.events).collect();
            let reply = match own.contains(&Appended::Frozen) {
                true => Err(EngineError::Moving(waiting.loaded.name.clone())),
                false => Ok(own),
            };
            // the caller may have given up; its events stay in the log
            let _ = waiting.reply.send(reply);
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
