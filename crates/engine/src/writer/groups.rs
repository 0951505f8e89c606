//! The tasks that commit: one for each append unit, and one for each experiment whose last commit
//! failed.
//!
//! An experiment whose row is locked must not fail the others of its unit. After a failed commit,
//! each of its experiments has a lane of its own: a task that commits for this experiment alone,
//! until that succeeds.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use super::commit::Committer;
use super::submission::Submission;
use rankduel_store::ExperimentId;

/// Most events of one commit. Further events wait for the next one.
const COMMIT_EVENTS_MAX: usize = 10_000;

/// Units that commit at the same time. With [`LANES_AT_ONCE`], as many as the connections of a
/// store that append.
pub(super) const COMMITS_AT_ONCE: usize = 14;

/// Lanes that commit at the same time. So few that lanes which wait for a lock, or for a node that
/// is down, leave the other connections alone.
pub(super) const LANES_AT_ONCE: usize = 2;

/// The task of a unit.
pub(super) struct Unit {
    committer: Committer,
    permits: Arc<Semaphore>,
    lanes: Lanes,
    gathering: Gathering,
}

impl Unit {
    pub fn new(committer: Committer, commits: Arc<Semaphore>, lanes: Arc<Semaphore>) -> Self {
        let lanes = Lanes { queues: HashMap::new(), permits: lanes };
        Self { committer, permits: commits, lanes, gathering: Gathering::default() }
    }

    /// Commit groups until there is nothing left to do. The queue is closed then, and the next
    /// submission starts another task.
    pub async fn run(mut self, mut submissions: mpsc::UnboundedReceiver<Submission>) {
        let Self { committer, permits, lanes, gathering } = &mut self;
        while let Some((group, permit)) =
            gathering.next(&mut submissions, permits, |submission| lanes.pass_on(submission)).await
        {
            if let Err(failed) = committer.commit(group).await {
                failed.into_iter().for_each(|(id, part)| lanes.open(committer, id, part));
            }
            drop(permit);
            if submissions.is_empty() && lanes.have_ended() {
                submissions.close();
            }
        }
    }
}

/// Gathers groups of submissions.
#[derive(Default)]
struct Gathering {
    /// A submission that was too large for the last group.
    held_over: Option<Submission>,
}

/// Submissions, and the permit to commit them.
type Permitted<'p> = (Vec<Submission>, Option<SemaphorePermit<'p>>);

impl Gathering {
    /// Wait for a submission and then for a permit, and add all others that have arrived by then.
    /// `pass_on` takes those that belong elsewhere. The group may be empty. `None`: there will be
    /// no more.
    async fn next<'p>(
        &mut self,
        submissions: &mut mpsc::UnboundedReceiver<Submission>,
        permits: &'p Semaphore,
        mut pass_on: impl FnMut(Submission) -> Option<Submission>,
    ) -> Option<Permitted<'p>> {
        let mut next = match self.held_over.take() {
            Some(submission) => submission,
            None => submissions.recv().await?,
        };
        // fails only if the semaphore is closed, which it never is
        let permit = permits.acquire().await.ok();
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
        Some((group, permit))
    }
}

/// The lanes of experiments whose last commit failed.
struct Lanes {
    queues: HashMap<ExperimentId, mpsc::UnboundedSender<Submission>>,
    permits: Arc<Semaphore>,
}

impl Lanes {
    /// Whether there is none.
    fn have_ended(&mut self) -> bool {
        self.queues.retain(|_, queue| !queue.is_closed());
        self.queues.is_empty()
    }

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
    while let Some((group, permit)) = gathering.next(&mut submissions, &permits, Some).await {
        if committer.commit(group).await.is_ok() {
            submissions.close();
        }
        drop(permit);
    }
}
