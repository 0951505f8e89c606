//! Telling other processes that logs have moved.
//!
//! A notification inside the transaction that appends would take a lock of the whole server, from
//! before its commit until that is on disk, so that no two such commits reach the disk together. So
//! notifications go out on their own after the commit, gathered, and their transactions wait for no
//! disk.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::PgPool;
use tokio::sync::mpsc;

use super::super::{ExperimentId, StoreError};
use super::CHANNEL;

/// What moves so soon after a notification goes into one with what follows.
const GATHERED_FOR: Duration = Duration::from_millis(5);

/// `set_config` holds for the statement's own transaction.
const TELL: &str = "select set_config('synchronous_commit', 'off', true), pg_notify($1, told)
     from unnest($2::text[]) as told";

/// Takes what is to be told; it is sent in the background.
#[derive(Debug)]
pub(super) struct Notifier(mpsc::UnboundedSender<(ExperimentId, u64)>);

impl Notifier {
    /// Start the task that sends. It lives as long as what is returned.
    pub fn start(pool: PgPool) -> Self {
        let (moved, heads) = mpsc::unbounded_channel();
        tokio::spawn(run(pool, heads));
        Self(moved)
    }

    /// The log of an experiment has grown to `head`.
    pub fn tell(&self, experiment: ExperimentId, head: u64) {
        // without the task nobody is told, and whoever follows looks for himself from time to time
        let _ = self.0.send((experiment, head));
    }
}

async fn run(pool: PgPool, mut moved: mpsc::UnboundedReceiver<(ExperimentId, u64)>) {
    while let Some((experiment, head)) = moved.recv().await {
        let mut heads = BTreeMap::from([(experiment, head)]);
        while let Ok((experiment, head)) = moved.try_recv() {
            let newest = heads.entry(experiment).or_default();
            *newest = head.max(*newest);
        }
        if let Err(error) = send(&pool, heads).await {
            tracing::debug!(%error, "other processes could not be told that logs have moved");
        }
        tokio::time::sleep(GATHERED_FOR).await;
    }
}

async fn send(pool: &PgPool, heads: BTreeMap<ExperimentId, u64>) -> Result<(), StoreError> {
    let told: Vec<String> =
        heads.into_iter().map(|(experiment, head)| format!("{experiment} {head}")).collect();
    sqlx::query(TELL).bind(CHANNEL).bind(told).execute(pool).await?;
    Ok(())
}
