//! How a process learns of log entries that other processes append: by notices and by polling.
//!
//! The database sends notices to its listeners ([`Store::listen`]) within milliseconds. A notice
//! can be lost, so every process also polls the heads of its experiments, which would be enough
//! alone.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Engine;
use crate::error::EngineError;
use rankduel_store::{ExperimentId, Notice, SharedStore, Store, StoreError, within};

/// Time limit of a replication round, so that a database that hangs delays nothing once it is back.
/// Entries that were folded until then stay folded.
const FOLLOW_WITHIN: Duration = Duration::from_secs(10);
/// After polling, pause for this many times as long as it took: with tens of thousands of
/// experiments in memory it takes more than a second, and must not keep the database busy. Notices
/// are followed meanwhile.
const POLL_PAUSES: u32 = 4;
/// The longest of these pauses.
const POLL_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Pause before listening again after a failure.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Listen forever. Returns only if the database does not send notices at all. Sends `None` when
/// notices may have been lost.
pub(crate) async fn listen(store: SharedStore, received: mpsc::UnboundedSender<Option<Notice>>) {
    let mut failing = false;
    loop {
        match listen_once(&*store, &received, &mut failing).await {
            Ok(()) => return,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot listen to the database; polling instead");
                }
                failing = true;
            }
        }
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

async fn listen_once(
    store: &dyn Store,
    received: &mpsc::UnboundedSender<Option<Notice>>,
    failing: &mut bool,
) -> Result<(), StoreError> {
    let Some(mut notices) = store.listen().await? else { return Ok(()) };
    if std::mem::take(failing) {
        tracing::info!("listening to the database again");
    }
    // earlier notices may be lost
    let mut notice = None;
    while received.send(notice).is_ok() {
        notice = notices.next().await?;
    }
    Ok(())
}

/// The pause after polling for `took`, such that polls begin at the interval `every` if they are
/// short. After a long one it is [`POLL_PAUSES`] times as long, up to [`POLL_PAUSE_MAX`].
fn pause_after_poll(took: Duration, every: Duration) -> Duration {
    let long = took.saturating_mul(POLL_PAUSES).min(POLL_PAUSE_MAX);
    every.saturating_sub(took).max(long)
}

/// Follow other processes until the engine is dropped.
pub(crate) async fn follow(
    engine: Weak<Engine>,
    mut notices: mpsc::UnboundedReceiver<Option<Notice>>,
    every: Duration,
) {
    let mut next_poll = Instant::now();
    let mut failing = false;
    loop {
        let first = tokio::select! {
            () = tokio::time::sleep_until(next_poll) => None,
            Some(notice) = notices.recv() => notice,
        };
        // and all that have arrived by now: the newest head of each experiment
        let (mut heads, mut poll_all) = (HashMap::new(), false);
        for notice in std::iter::once(first).chain(std::iter::from_fn(|| notices.try_recv().ok())) {
            match notice {
                Some(Notice { experiment, head }) => {
                    let newest = heads.entry(experiment).or_insert(head);
                    *newest = head.max(*newest);
                }
                None => poll_all = true,
            }
        }
        let Some(engine) = engine.upgrade() else { return };
        let started = Instant::now();
        let followed = follow_once(&engine, heads, poll_all).await;
        if poll_all {
            next_poll = Instant::now() + pause_after_poll(started.elapsed(), every);
        }
        if poll_all && followed.is_ok() {
            engine.metrics.followed();
        }
        // log the start and the end of an outage, not every round of it
        match followed {
            Ok(()) if failing && poll_all => {
                failing = false;
                tracing::info!("following the store again");
            }
            Err(error) if !failing => {
                failing = true;
                tracing::error!(%error, "cannot follow the store; serving from memory");
            }
            _ => {}
        }
    }
}

async fn follow_once(
    engine: &Engine,
    noticed: HashMap<ExperimentId, u64>,
    poll_all: bool,
) -> Result<(), EngineError> {
    match poll_all {
        true => within(FOLLOW_WITHIN, engine.registry.follow()).await,
        false => within(FOLLOW_WITHIN, engine.registry.follow_noticed(noticed)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_polls_are_rarer() {
        let every = Duration::from_millis(500);
        let pause = |took| pause_after_poll(Duration::from_millis(took), every).as_millis();
        assert_eq!([pause(0), pause(2), pause(100)], [500, 498, 400]);
        assert_eq!([pause(1_000), pause(1_200), pause(10_000)], [4_000, 4_800, 5_000]);
    }
}
