//! The time that all servers of a database share.
//!
//! Time bounds what counts: when a duel was issued, when its window has ended, at which date an
//! experiment ends. With times of its own clock, a server that is ahead would set bounds that the
//! others cannot reach. So servers take the time from their database. Between two readings a clock
//! carries it on that nobody sets.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::clock::{Clock, SharedClock, SystemClock};
use crate::cohorts::SLACK_MS;
use crate::metrics::Metrics;
use rankduel_store::{SharedStore, Store, StoreError};

/// Pause between two readings. The clocks that carry the time on differ by far less meanwhile.
const READ_EVERY: Duration = Duration::from_secs(10);
/// A reading that took longer is not taken: it is uncertain by as much.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// The time of the database.
#[derive(Debug)]
struct DatabaseClock {
    since: Instant,
    /// Unix milliseconds at `since`.
    began_ms: AtomicI64,
}

/// The clock of a server: that of its database, or of this machine if the database is a file.
pub async fn shared_clock(
    store: &SharedStore,
    metrics: Arc<Metrics>,
) -> Result<SharedClock, StoreError> {
    let clock = DatabaseClock { since: Instant::now(), began_ms: AtomicI64::new(0) };
    let Some(began_ms) = clock.read(&**store, Duration::MAX).await? else {
        return Ok(Arc::new(SystemClock));
    };
    clock.began_ms.store(began_ms, Ordering::Relaxed);
    let clock = Arc::new(clock);
    tokio::spawn(follow(Arc::downgrade(&clock), Arc::downgrade(store), metrics));
    Ok(clock)
}

impl Clock for DatabaseClock {
    fn now_ms(&self) -> i64 {
        self.began_ms.load(Ordering::Relaxed) + milliseconds(self.since.elapsed())
    }
}

impl DatabaseClock {
    /// The database's time at `since`; `None` if it has none, or did not answer in this time.
    async fn read(&self, store: &dyn Store, limit: Duration) -> Result<Option<i64>, StoreError> {
        let before = self.since.elapsed();
        let Some(now_ms) = store.clock_ms().await? else { return Ok(None) };
        let after = self.since.elapsed();
        let middle = (before + after) / 2;
        Ok((after - before <= limit).then(|| now_ms - milliseconds(middle)))
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Read the database's time until the clock is dropped, and compare the clock of this machine.
async fn follow(clock: Weak<DatabaseClock>, store: Weak<dyn Store>, metrics: Arc<Metrics>) {
    let mut was_wrong = false;
    loop {
        let (Some(clock), Some(store)) = (clock.upgrade(), store.upgrade()) else { return };
        // the failures of the database are reported by those who need more of it
        if let Ok(Some(began_ms)) = clock.read(&*store, READ_WITHIN).await {
            clock.began_ms.store(began_ms, Ordering::Relaxed);
        }
        let ahead_ms = SystemClock.now_ms() - clock.now_ms();
        let ahead_seconds = ahead_ms as f64 / 1000.0;
        metrics.clock_ahead_seconds.set(ahead_seconds);
        let is_wrong = ahead_ms.abs() > SLACK_MS;
        if is_wrong && !was_wrong {
            tracing::warn!(
                ahead_seconds,
                "the clock of this machine is not that of the database, which is used"
            );
        }
        was_wrong = is_wrong;
        drop((clock, store));
        tokio::time::sleep(READ_EVERY).await;
    }
}
