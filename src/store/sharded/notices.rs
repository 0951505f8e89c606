//! [`Notices`] of several databases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::set::Shard;
use crate::store::member::Member;
use crate::store::{Notice, Notices, StoreError};

/// Pause before listening again to a database that did not answer.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Notices that wait for the reader.
const WAITING: usize = 1024;

/// Listen to each of these databases. One that does not answer does not stop the others. `None` if
/// none of them sends notices.
pub(super) fn listen(shards: &[Shard]) -> Option<Box<dyn Notices>> {
    let sends = |shard: &&Shard| shard.store.kind() != "sqlite";
    let (found, notices) = mpsc::channel(WAITING);
    let mut listeners = JoinSet::new();
    for shard in shards.iter().filter(sends) {
        let (store, label, found) =
            (Arc::clone(&shard.store), Arc::clone(&shard.label), found.clone());
        listeners.spawn(async move { listen_to(&*store, &label, found).await });
    }
    (!listeners.is_empty()).then(|| Box::new(Merged { notices, _listeners: listeners }) as _)
}

struct Merged {
    notices: mpsc::Receiver<Option<Notice>>,
    /// They end with this value.
    _listeners: JoinSet<()>,
}

#[async_trait]
impl Notices for Merged {
    async fn next(&mut self) -> Result<Option<Notice>, StoreError> {
        match self.notices.recv().await {
            Some(notice) => Ok(notice),
            // every database is behind a pooler
            None => std::future::pending().await,
        }
    }
}

/// Pass on the notices of one database, until it turns out not to send any.
async fn listen_to(store: &dyn Member, label: &str, found: mpsc::Sender<Option<Notice>>) {
    let mut failing = false;
    loop {
        let Err(error) = listen_once(store, &found, &mut failing).await else { return };
        if !failing {
            tracing::warn!(%error, database = label, "cannot listen to a database; polling instead");
        }
        failing = true;
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

async fn listen_once(
    store: &dyn Member,
    found: &mpsc::Sender<Option<Notice>>,
    failing: &mut bool,
) -> Result<(), StoreError> {
    let Some(mut notices) = store.listen().await? else { return Ok(()) };
    *failing = false;
    // earlier notices may be lost
    let mut notice = None;
    while found.send(notice).await.is_ok() {
        notice = notices.next().await?;
    }
    Ok(())
}
