//! Whether the server accepts traffic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::service::Service;

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

/// The result of a check of the databases.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseCheck {
    pub at: Instant,
    pub took: Duration,
    /// Whether one of them answers.
    pub ok: bool,
    /// Positions of those that do not, from 1.
    pub down: Vec<usize>,
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

    /// Check the databases, or return the last result if it is recent. Concurrent callers share one
    /// check.
    ///
    /// A server is ready as long as one of several databases answers: it serves the experiments
    /// there, and no other server could do more.
    pub(crate) async fn check_database(&self, service: &Service) -> DatabaseCheck {
        let mut newest = self.database.lock().await;
        if let Some(check) = newest.as_ref().filter(|it| it.at.elapsed() < CHECK_INTERVAL) {
            return check.clone();
        }
        let started = Instant::now();
        let mut down = Vec::new();
        let checks = service.check_each();
        let all = match tokio::time::timeout(CHECK_TIMEOUT, checks).await {
            Ok(checks) => {
                for (index, (_, checked)) in checks.iter().enumerate() {
                    if let Err(error) = checked {
                        tracing::warn!(%error, "the check of a database failed");
                        down.push(index + 1);
                    }
                }
                checks.len()
            }
            Err(_) => {
                tracing::warn!(
                    seconds = CHECK_TIMEOUT.as_secs(),
                    "not ready: the database check took too long"
                );
                0
            }
        };
        service.databases_down(down.len());
        let (at, took) = (Instant::now(), started.elapsed());
        newest.insert(DatabaseCheck { at, took, ok: down.len() < all, down }).clone()
    }
}
