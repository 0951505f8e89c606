//! The state that every handler can extract, and whether the server accepts traffic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Service;
use rankduel_engine::metrics::Metrics;
use rankduel_store::StoreError;

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

/// Time between two checks of the database. `/readyz` needs no key, so it reads the result of the
/// last one: the number of probes must not determine the load on the database.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A database that takes longer than this to answer a trivial query cannot serve requests.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether the server accepts traffic.
#[derive(Debug)]
pub struct Readiness {
    started: Instant,
    draining: AtomicBool,
    database: Mutex<DatabaseCheck>,
}

/// The state of the database. Duels need it only to load an experiment; feedback always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DatabaseState {
    /// It answers.
    Ok,
    /// It does not answer, or refuses to. Servers recover by themselves when it is back.
    Unavailable,
    /// It is not one that this server can serve from: it has another version's schema, or its file
    /// moved.
    Unusable,
}

impl DatabaseState {
    /// The state that the result of a check shows.
    fn of(checked: &Result<(), StoreError>) -> Self {
        match checked {
            Ok(()) => Self::Ok,
            Err(StoreError::Schema(_) | StoreError::Files(_)) => Self::Unusable,
            Err(_) => Self::Unavailable,
        }
    }
}

/// The result of a check of the database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseCheck {
    pub at: Instant,
    pub took: Duration,
    pub state: DatabaseState,
}

impl Default for Readiness {
    /// A server starts only once its database has answered.
    fn default() -> Self {
        let (at, took) = (Instant::now(), Duration::ZERO);
        Self {
            started: at,
            draining: AtomicBool::new(false),
            database: Mutex::new(DatabaseCheck { at, took, state: DatabaseState::Ok }),
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

    /// The last check of the database.
    pub(crate) fn database(&self) -> DatabaseCheck {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Check the database from time to time, as long as the service exists and serves.
    pub(crate) fn watch_database(self: &Arc<Self>, service: &Arc<Service>, metrics: &Metrics) {
        let (this, service) = (Arc::clone(self), Arc::downgrade(service));
        let up = metrics.database_up.clone();
        up.set(1);
        tokio::spawn(async move {
            while let Some(service) = service.upgrade().filter(|_| !this.is_draining()) {
                this.check_database(&service).await;
                up.set((this.database().state == DatabaseState::Ok).into());
                drop(service);
                tokio::time::sleep(CHECK_EVERY).await;
            }
        });
    }

    async fn check_database(&self, service: &Service) {
        let started = Instant::now();
        let checked = tokio::time::timeout(CHECK_TIMEOUT, service.engine.store.check()).await;
        let checked = checked.unwrap_or(Err(StoreError::Slow(CHECK_TIMEOUT)));
        let state = DatabaseState::of(&checked);
        let gone_since = &service.database_gone_since;
        if state == DatabaseState::Ok {
            gone_since.store(0, Ordering::Relaxed);
        } else if gone_since.load(Ordering::Relaxed) == 0 {
            gone_since.store(service.now_ms(), Ordering::Relaxed);
        }
        match checked {
            _ if state == self.database().state => {}
            Ok(()) => tracing::info!("the database answers again"),
            Err(error) => tracing::warn!(%error, ?state, "the check of the database failed"),
        }
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) =
            DatabaseCheck { at: Instant::now(), took: started.elapsed(), state };
    }
}
