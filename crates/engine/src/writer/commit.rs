//! One commit: appends a group of submissions, folds it and replies to the callers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::submission::{Capacity, Submission};
use crate::clock::SharedClock;
use crate::error::EngineError;
use crate::loaded::LoadedExperiment;
use crate::metrics::Metrics;
use rankduel_store::{Appended, ExperimentId, LogEntry, NewEvent, SharedStore, StoreError, within};

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

/// Handles that every commit needs.
#[derive(Clone)]
pub(super) struct CommitSettings {
    pub store: SharedStore,
    pub clock: SharedClock,
    pub capacity: Capacity,
    /// Time limit of a commit, and of reading what is missing before it is folded.
    pub within: Duration,
}

/// Appends groups of submissions, and hands them on to be folded.
#[derive(Clone)]
pub(super) struct Committer {
    settings: CommitSettings,
    committed: mpsc::Sender<Commit>,
}

/// The experiments of a failed commit, with the submissions that are to be tried again.
pub(super) type Failed = BTreeMap<ExperimentId, Vec<Submission>>;

impl Committer {
    /// Start the task that folds. It ends when the committer and its clones are dropped.
    pub fn start(settings: CommitSettings) -> Self {
        // a commit is folded while the next one is written
        let (committed, folding) = mpsc::channel(1);
        let CommitSettings { store, capacity, within: limit, .. } = settings.clone();
        tokio::spawn(fold(store, limit, capacity.metrics, folding));
        Self { settings, committed }
    }

    /// Append a group. A group of one experiment fails for good: its callers get the error. Other
    /// groups can be tried again, experiment by experiment, if the database refused the group; if
    /// it does not answer, their time is up.
    pub async fn commit(&self, group: Vec<Submission>) -> Result<(), Failed> {
        if group.is_empty() {
            return Ok(());
        }
        let CommitSettings { store, clock, capacity, within: limit } = &self.settings;
        let now_ms = clock.now_ms();
        let (mut events, mut waiting) = (Vec::new(), Vec::with_capacity(group.len()));
        for Submission { loaded, events: own, reply, _permits } in group {
            let count = own.len();
            events.extend(own.into_iter().map(|event| (loaded.id, event)));
            let position = loaded.position();
            waiting.push(Waiting { loaded, events: count, position, reply, _permits });
        }
        let metrics = &capacity.metrics;
        let started = Instant::now();
        let committed = match within(*limit, store.append(&events, now_ms)).await {
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
        capacity.measure();
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
    limit: Duration,
    metrics: Arc<Metrics>,
    mut commits: mpsc::Receiver<Commit>,
) {
    while let Some(Commit { events, appended, recorded_at, waiting }) = commits.recv().await {
        fold_committed(&store, limit, &metrics, &waiting, events, &appended, recorded_at).await;
        let mut appended = appended.into_iter();
        for waiting in waiting {
            let own: Vec<_> = appended.by_ref().take(waiting.events).collect();
            // the caller may have given up; its events stay in the log
            let _ = waiting.reply.send(Ok(own));
        }
    }
}

/// Fold the recorded events of a commit, experiment by experiment in log order.
async fn fold_committed(
    store: &SharedStore,
    limit: Duration,
    metrics: &Metrics,
    waiting: &[Waiting],
    events: Vec<(ExperimentId, NewEvent)>,
    appended: &[Appended],
    recorded_at: i64,
) {
    let mut recorded: HashMap<_, Vec<LogEntry>> = HashMap::new();
    let mut gone = HashSet::new();
    for ((experiment, NewEvent { nonce, event, .. }), result) in events.into_iter().zip(appended) {
        match *result {
            Appended::Recorded(position) => {
                let entry = LogEntry { position, nonce, recorded_at, event };
                recorded.entry(experiment).or_default().push(entry);
            }
            Appended::Missing => {
                gone.insert(experiment);
            }
            _ => {}
        }
    }
    for Waiting { loaded, position, .. } in waiting {
        if gone.contains(&loaded.id) {
            loaded.report_gone(metrics);
        }
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
            Ok(false) => within(limit, loaded.catch_up(&**store)).await,
            Err(error) => Err(error),
        };
        if let Err(error) = folded {
            // it is durable and therefore acknowledged; replication folds it later
            tracing::error!(%error, experiment = loaded.name, "an appended outcome could not be folded yet");
        }
    }
}
