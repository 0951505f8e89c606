//! Group commit: one task that appends everything that has arrived while the last commit was under way, in one
//! transaction, folds it, and only then answers those who wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::error::ServiceError;
use super::live::Live;
use super::service::ServiceSettings;
use crate::clock::SharedClock;
use crate::store::{Appended, LogEntry, NewEvent, SharedStore, StoreError};
use crate::telemetry::metrics::Metrics;

/// Most events of one commit; what has arrived beyond that waits for the next.
const COMMIT_EVENTS_MAX: usize = 10_000;

/// Takes events and answers when they are durable.
#[derive(Clone)]
pub struct Writer {
    queue: mpsc::UnboundedSender<Submission>,
    room: Room,
}

/// Places in the queue.
#[derive(Clone)]
struct Room {
    places: Arc<Semaphore>,
    events_max: usize,
    metrics: Arc<Metrics>,
}

impl Room {
    fn measure(&self) {
        self.metrics.queue_events.set((self.events_max - self.places.available_permits()) as i64);
    }
}

struct Submission {
    live: Arc<Live>,
    events: Vec<NewEvent>,
    reply: oneshot::Sender<Result<Vec<Appended>, ServiceError>>,
    _places: OwnedSemaphorePermit,
}

impl Writer {
    /// Start the task. It lives as long as what is returned.
    pub fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: &ServiceSettings,
    ) -> Self {
        let (queue, submissions) = mpsc::unbounded_channel();
        let events_max = settings.queue_events_max.min(Semaphore::MAX_PERMITS);
        let room = Room { places: Arc::new(Semaphore::new(events_max)), events_max, metrics };
        tokio::spawn(run(store, clock, room.clone(), settings.commit_within, submissions));
        Self { queue, room }
    }

    /// Append `events` to one experiment's log. Answers when they are durable and folded.
    pub async fn append(
        &self,
        live: &Arc<Live>,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Appended>, ServiceError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = u32::try_from(events.len()).map_err(|_| ServiceError::Overloaded)?;
        let places = Arc::clone(&self.room.places)
            .try_acquire_many_owned(wanted)
            .map_err(|_| ServiceError::Overloaded)?;
        self.room.measure();
        let (reply, answer) = oneshot::channel();
        let submission = Submission { live: Arc::clone(live), events, reply, _places: places };
        let gone = || ServiceError::Internal("the writer has stopped".into());
        self.queue.send(submission).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn run(
    store: SharedStore,
    clock: SharedClock,
    room: Room,
    within: Duration,
    mut submissions: mpsc::UnboundedReceiver<Submission>,
) {
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
        commit(&store, clock.now_ms(), within, &room.metrics, group).await;
        room.measure();
    }
}

async fn commit(
    store: &SharedStore,
    now_ms: i64,
    within: Duration,
    metrics: &Metrics,
    group: Vec<Submission>,
) {
    let events: Vec<_> = group
        .iter()
        .flat_map(|submission| submission.events.iter().map(|event| (submission.live.id, event.clone())))
        .collect();
    let started = Instant::now();
    let result = match tokio::time::timeout(within, store.append(&events, now_ms)).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::Slow(within)),
    };
    match result {
        Ok(appended) => {
            metrics.commit_events.observe(events.len() as f64);
            metrics.commit_duration_seconds.observe(started.elapsed().as_secs_f64());
            fold_committed(store, within, &group, &events, &appended, now_ms).await;
            let mut appended = appended.into_iter();
            for submission in group {
                let own = appended.by_ref().take(submission.events.len()).collect();
                // nobody waits any more when the request was cut off; what was written stays
                let _ = submission.reply.send(Ok(own));
            }
        }
        Err(error) => {
            metrics.commit_failures.inc();
            tracing::error!(%error, events = events.len(), "commit failed");
            let error = Arc::new(error);
            for submission in group {
                let _ = submission.reply.send(Err(ServiceError::Store(Arc::clone(&error))));
            }
        }
    }
}

/// Fold what was recorded, experiment by experiment in log order, before anyone is answered.
async fn fold_committed(
    store: &SharedStore,
    within: Duration,
    group: &[Submission],
    events: &[(crate::store::ExperimentId, NewEvent)],
    appended: &[Appended],
    now_ms: i64,
) {
    let mut recorded: HashMap<_, Vec<LogEntry>> = HashMap::new();
    for ((experiment, new), result) in events.iter().zip(appended) {
        if let Appended::Recorded(position) = *result {
            recorded.entry(*experiment).or_default().push(LogEntry {
                position,
                nonce: new.nonce,
                recorded_at: now_ms,
                event: new.event.clone(),
            });
        }
    }
    for submission in group {
        // the first submission of each experiment takes its entries
        let Some(entries) = recorded.remove(&submission.live.id) else { continue };
        let live = &submission.live;
        let folded = match live.absorb(&entries) {
            Ok(true) => Ok(()),
            // another process has appended in between; a store that hangs must not stop the writer
            Ok(false) => match tokio::time::timeout(within, live.catch_up(&**store)).await {
                Ok(caught_up) => caught_up,
                Err(_) => Err(StoreError::Slow(within).into()),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = folded {
            // it is durable, so it is acknowledged all the same; the follower folds it later
            tracing::error!(%error, experiment = live.name, "an appended outcome could not be folded yet");
        }
    }
}
