//! How a process learns what the others have appended: it is told, and it looks.
//!
//! The database tells who listens ([`ExperimentLog::listen`]), within milliseconds. What is told can
//! be lost, so every process also looks at the heads of its experiments from time to time, and
//! that alone would be enough.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::service::Service;
use crate::store::{ExperimentId, ExperimentLog, Notice, SharedStore, StoreError};

/// A round of following that takes longer is given up on, so that a database that hangs holds
/// nothing up once it is back. What was folded until then stays folded.
const FOLLOW_WITHIN: Duration = Duration::from_secs(10);
/// Pause before listening is tried again after it failed.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What was told and not looked at yet: at most one entry an experiment.
#[derive(Debug, Default)]
pub(crate) struct PendingNotices {
    heads: Mutex<HashMap<ExperimentId, u64>>,
    /// Something was told that is not known: look everywhere.
    missed: AtomicBool,
    wake: Notify,
}

impl PendingNotices {
    fn note(&self, notice: Option<Notice>) {
        match notice {
            Some(Notice { experiment, head }) => {
                let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
                let newest = heads.entry(experiment).or_default();
                *newest = head.max(*newest);
            }
            None => self.missed.store(true, Ordering::SeqCst),
        }
        self.wake.notify_one();
    }

    fn take(&self) -> HashMap<ExperimentId, u64> {
        std::mem::take(&mut *self.heads.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Listen for ever, or until it turns out that the database does not tell.
pub(crate) async fn listen(store: SharedStore, told: Arc<PendingNotices>) {
    let mut failing = false;
    loop {
        match listen_once(&*store, &told, &mut failing).await {
            Ok(()) => return,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot listen to the database; looking from time to time");
                }
                failing = true;
            }
        }
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

async fn listen_once(
    store: &dyn ExperimentLog,
    told: &PendingNotices,
    failing: &mut bool,
) -> Result<(), StoreError> {
    let Some(mut notices) = store.listen().await? else { return Ok(()) };
    if std::mem::take(failing) {
        tracing::info!("listening to the database again");
    }
    // what was told before is not known
    told.note(None);
    loop {
        told.note(notices.next().await?);
    }
}

/// Keep up with other processes until the service is gone.
pub(crate) async fn follow(service: Weak<Service>, told: Arc<PendingNotices>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        let look_everywhere = tokio::select! {
            _ = ticks.tick() => true,
            () = told.wake.notified() => told.missed.swap(false, Ordering::SeqCst),
        };
        let Some(service) = service.upgrade() else { return };
        let registry = &service.registry;
        let following = async {
            let noticed = told.take();
            if look_everywhere {
                registry.follow().await
            } else {
                registry.follow_noticed(noticed).await
            }
        };
        let followed = tokio::time::timeout(FOLLOW_WITHIN, following)
            .await
            .unwrap_or_else(|_| Err(StoreError::Slow(FOLLOW_WITHIN).into()));
        if look_everywhere && followed.is_ok() {
            service.metrics.followed_timestamp_seconds.set(service.now_ms() as f64 / 1000.0);
        }
        // once when it starts and once when it ends, not twice a second
        match followed {
            Ok(()) if failing && look_everywhere => {
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
