//! The service: how it starts and stops, and how it finds experiments.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::service::answers;
use crate::service::conclusion::conclude_if_due;
use crate::service::error::ServiceError;
use crate::service::harm::act_on_harm;
use crate::service::reports::pool::ReportPool;
use crate::service::threads::{Priority, WorkThreads, is_long};
use crate::service::webhook::Webhook;
use interleaving::PlanCache;
use rankduel_engine::Engine;
use rankduel_engine::access::{AccessKeys, EndedSessions};
use rankduel_engine::clock::SharedClock;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::name_error;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::maintenance::{PeriodicTasks, TaskError};
use rankduel_engine::metrics::Metrics;
use rankduel_engine::settings::EngineSettings;
use rankduel_store::entropy;
use rankduel_store::{SharedStore, Store};

/// Bytes of the linear programs whose solutions are cached.
const PLANS_BYTES: usize = 8 << 20;

/// Everything the API does, without HTTP.
pub struct Service {
    pub(crate) engine: Arc<Engine>,
    pub(crate) access: Arc<AccessKeys>,
    pub(crate) ended_sessions: EndedSessions,
    /// Seed of the random choices of selections.
    pub(super) selection_seed: u64,
    /// Solved linear programs of optimized interleaving.
    pub(super) plans: Arc<PlanCache>,
    pub(crate) reports: Arc<ReportPool>,
    /// Threads for long work on the content of requests. They are not those for reports, so that
    /// feedback does not wait for a report.
    pub(crate) bodies: Arc<WorkThreads>,
    /// The thread for many selections, which hold the lock of a fold.
    pub(super) selections: WorkThreads,
    /// Held while metrics are written, so that concurrent scrapes occupy one thread.
    pub(crate) scrape: Mutex<()>,
    /// Unix milliseconds since which the database does not answer; 0 while it does.
    pub(crate) database_gone_since: AtomicI64,
    /// Where notices go, if anywhere.
    pub(super) webhook: OnceLock<Arc<Webhook>>,
}

impl Service {
    /// Start serving from `store`, whose schema must be current. Starts the background tasks on the
    /// running tokio runtime.
    pub async fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: EngineSettings,
    ) -> Result<Arc<Self>, ServiceError> {
        let reports = ReportPool::start(settings.answer_bytes, settings.reports_within)?;
        let engine = Engine::start(Arc::clone(&store), clock, metrics, settings).await?;
        let ended_sessions = EndedSessions::load(Arc::<dyn Store>::clone(&store) as _).await?;
        let service = Arc::new(Self {
            engine,
            access: Arc::new(AccessKeys::load(store).await?),
            ended_sessions,
            selection_seed: entropy::number().map_err(EngineError::from)?,
            plans: Arc::new(PlanCache::new(PLANS_BYTES)),
            reports: Arc::new(reports),
            bodies: Arc::new(WorkThreads::start("body", Priority::Low)?),
            selections: WorkThreads::start("select", Priority::Normal)?,
            scrape: Mutex::new(()),
            database_gone_since: AtomicI64::new(0),
            webhook: OnceLock::new(),
        });
        let tasks: Arc<dyn PeriodicTasks> = Arc::<Self>::clone(&service);
        service.engine.start_background(Arc::downgrade(&tasks));
        Ok(service)
    }

    /// Run `work` on the content of a request: on this thread, or on those for long work if its
    /// estimated time in nanoseconds is long. It must take no lock that duels need.
    pub(super) async fn run_by_cost<T: Send + 'static>(
        &self,
        nanoseconds: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        if is_long(nanoseconds) { self.bodies.run(work).await } else { Ok(work()) }
    }

    /// Write what is only in memory, then close the store. No request may be running.
    pub async fn shutdown(self: &Arc<Self>) {
        self.engine.stop_background().await;
        answers::keep_all(self).await;
        if let Err(error) = self.access.note_uses().await {
            tracing::warn!(%error, "the last uses of keys are not recorded");
        }
        self.engine.close().await;
    }

    pub fn now_ms(&self) -> i64 {
        self.engine.now_ms()
    }

    /// Since when, in Unix milliseconds, and why answers are refused; `None` while they are taken.
    pub(super) fn refused(&self) -> Option<(i64, &'static str)> {
        let since = self.database_gone_since.load(Ordering::Relaxed);
        (since > 0).then_some((since, "the database does not answer"))
    }

    /// The experiments in memory, by name.
    pub fn loaded(&self) -> Vec<Arc<LoadedExperiment>> {
        self.engine.registry.all()
    }

    /// The experiment with this name, if it is in memory. Does not keep it there.
    pub fn peek(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        self.engine.registry.peek(name)
    }

    /// The experiment with this name, loaded if necessary.
    pub async fn experiment(&self, name: &str) -> Result<Arc<LoadedExperiment>, ServiceError> {
        if name_error(name).is_some() {
            return Err(ServiceError::not_found(name));
        }
        Ok(self.engine.registry.get(name).await?)
    }
}

#[async_trait]
impl PeriodicTasks for Service {
    async fn refresh_keys(&self) -> Result<(), TaskError> {
        self.access.refresh().await?;
        self.ended_sessions.refresh().await?;
        Ok(self.access.note_uses().await?)
    }

    async fn maintain(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), TaskError> {
        act_on_harm(self, loaded).await?;
        conclude_if_due(self, loaded).await?;
        Ok(answers::keep(self, loaded).await?)
    }
}
