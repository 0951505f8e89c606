//! Notices that logs have grown: sent to other processes, and received from them.
//!
//! A notification inside the transaction that appends would hold a lock of the whole server until
//! its commit is on disk, so two such commits could not share one disk sync. Notifications are
//! therefore sent after the commit, gathered, in transactions of their own that do not wait for the
//! disk.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::sync::mpsc;

use super::lease::Pool;
use crate::{ExperimentId, Notice, Notices, StoreError};

/// The channel of notifications. A payload is `ID HEAD`: an experiment's number and its new head.
const CHANNEL: &str = "rankduel";

/// Changes within this time after a notification are gathered into the next one.
const GATHERED_FOR: Duration = Duration::from_millis(5);

/// `set_config` applies to the transaction of this statement only.
const NOTIFY: &str = "select set_config('synchronous_commit', 'off', true), pg_notify($1, payload)
     from unnest($2::text[]) as payload";

/// Queue of pending notices, which a task sends in the background.
#[derive(Debug)]
pub(super) struct Notifier(mpsc::UnboundedSender<(ExperimentId, u64)>);

impl Notifier {
    /// Start the task. It ends when the notifier is dropped.
    pub fn start(pool: Pool) -> Self {
        let (pending, heads) = mpsc::unbounded_channel();
        tokio::spawn(run(pool, heads));
        Self(pending)
    }

    /// Notify others that the log of an experiment has grown to `head`.
    pub fn announce(&self, experiment: ExperimentId, head: u64) {
        // fails only without the task; other processes poll, too
        let _ = self.0.send((experiment, head));
    }
}

async fn run(pool: Pool, mut pending: mpsc::UnboundedReceiver<(ExperimentId, u64)>) {
    while let Some((experiment, head)) = pending.recv().await {
        let mut heads = BTreeMap::from([(experiment, head)]);
        while let Ok((experiment, head)) = pending.try_recv() {
            let newest = heads.entry(experiment).or_default();
            *newest = head.max(*newest);
        }
        if let Err(error) = send(&pool, heads).await {
            tracing::debug!(%error, "other processes were not notified of new log entries");
        }
        tokio::time::sleep(GATHERED_FOR).await;
    }
}

async fn send(pool: &Pool, heads: BTreeMap<ExperimentId, u64>) -> Result<(), StoreError> {
    let payloads: Vec<String> =
        heads.into_iter().map(|(experiment, head)| format!("{experiment} {head}")).collect();
    pool.execute(sqlx::query(NOTIFY).bind(CHANNEL).bind(payloads)).await.map(drop)
}

/// A connection that receives notices.
pub(super) struct Listener(PgListener);

impl Listener {
    /// Listen on a connection of this pool.
    pub async fn start(pool: &PgPool) -> Result<Self, StoreError> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }
}

#[async_trait]
impl Notices for Listener {
    async fn next(&mut self) -> Result<Option<Notice>, StoreError> {
        let Some(notification) = self.0.try_recv().await? else { return Ok(None) };
        // a payload that this program cannot parse still means that something happened
        Ok(notification.payload().split_once(' ').and_then(|(experiment, head)| {
            Some(Notice { experiment: experiment.parse().ok()?, head: head.parse().ok()? })
        }))
    }
}
