//! The state that every handler can extract, and whether the server accepts traffic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::service::Service;
use rankduel_engine::metrics::Metrics;

/// The state of the API. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The use cases.
    pub service: Arc<Service>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Whether the server accepts traffic.
    pub readiness: Arc<Readiness>,
}

/// Minimum time between two checks of the database. `/readyz` needs no key, so the number of probes
/// must not determine the load on the database.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A database that takes longer than this to answer a trivial query cannot serve requests.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the server accepts traffic.
#[derive(Debug)]
pub struct Readiness {
    started: Instant,
    draining: AtomicBool,
    database: Mutex<Option<DatabaseCheck>>,
}

/// The result of a check of the database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseCheck {
    pub at: Instant,
    pub took: Duration,
    pub ok: bool,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            draining: AtomicBool::new(false),
            database: Mutex::new(None),
        }
    }
}

impl Readiness {
    /// Report from now on that the server is shutting down.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Check the database, or return the last result if it is recent. Concurrent callers share one
    /// check.
    pub(crate) async fn check_database(&self, service: &Service) -> DatabaseCheck {
        let mut newest = self.database.lock().await;
        if let Some(check) = newest.as_ref().filter(|it| it.at.elapsed() < CHECK_INTERVAL) {
            return *check;
        }
        let started = Instant::now();
        let ok = match tokio::time::timeout(CHECK_TIMEOUT, service.check()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "not ready: the check of the database failed");
                false
            }
            Err(_) => {
                tracing::warn!(
                    seconds = CHECK_TIMEOUT.as_secs(),
                    "not ready: the database check took too long"
                );
                false
            }
        };
        *newest.insert(DatabaseCheck { at: Instant::now(), took: started.elapsed(), ok })
    }
}
