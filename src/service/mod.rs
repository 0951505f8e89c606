//! What a process does for its experiments: starts, hands out duels, follows the store, stops.
//!
//! The other use cases: `lifecycle.rs`, `pages.rs`, `receive.rs`, `standings.rs`, `batches.rs`.

pub mod batches;
mod change;
mod conclusion;
pub mod feedback;
pub mod lifecycle;
pub mod pages;
pub mod reports;
pub mod retention;
mod roster_changes;
pub mod transfer;
pub mod verify;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tokio::task::JoinHandle;

use crate::access::AccessKeys;
use crate::clock::SharedClock;
use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::name_error;
use crate::engine::loaded::LoadedExperiment;
use crate::engine::maintenance;
use crate::engine::registry::Registry;
use crate::engine::replication::{self, PendingNotices};
use crate::engine::writer::Writer;
use crate::entropy;
use crate::events::{ControlEvent, Event, Status};
use crate::store::{Appended, AuditRecord, NewEvent, Nonce, SharedStore};
use crate::telemetry::metrics::{DuelKind, Metrics};
use crate::telemetry::trace;
use crate::tokens::duel_token::DuelToken;
use crate::tokens::signing::SigningKeys;
use dueling_bandits::{PolicyRng, Selection, step_rng};
use interleaving::PlanCache;

/// Linear programs whose solutions are kept; each takes some kilobytes.
const PLANS_KEPT: usize = 1000;

/// What a service can be tuned by.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Events that may wait for a commit; beyond that feedback is refused with "try again".
    pub queue_events_max: usize,
    /// A commit that takes longer is given up on: whether it was kept is then unknown, and a repeat
    /// finds out. Below the time limit of requests, so that the caller is told.
    pub commit_within: Duration,
    /// How often to look at what other processes have appended. They also tell, which is faster.
    pub poll_every: Duration,
    /// Whether to listen to what the database tells.
    pub listen: bool,
    /// An experiment that nobody has asked for in this time is dropped from memory.
    pub idle_after: Duration,
    /// Estimated bytes that experiments may take in memory together; beyond that the longest unused
    /// are dropped.
    pub memory_bytes: u64,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            queue_events_max: 100_000,
            commit_within: Duration::from_secs(8),
            poll_every: Duration::from_millis(500),
            listen: true,
            idle_after: Duration::from_secs(3600),
            memory_bytes: 1 << 30,
        }
    }
}

/// Everything the API does, without HTTP.
pub struct Service {
    pub(crate) store: SharedStore,
    pub(crate) clock: SharedClock,
    pub(crate) registry: Arc<Registry>,
    pub(crate) writer: Writer,
    pub(crate) keys: SigningKeys,
    pub(crate) access: Arc<AccessKeys>,
    pub(crate) metrics: Arc<Metrics>,
    /// High half of this process's nonces.
    process: u64,
    /// Low half of the next nonce; also the step of the generator of the next selection.
    counter: AtomicU64,
    chance_seed: u64,
    /// Solved linear programs of optimized interleaving.
    pub(crate) plans: Arc<PlanCache>,
    pub(crate) idle_after_ms: i64,
    /// Ended at shutdown.
    background: Mutex<Vec<JoinHandle<()>>>,
}

/// A duel as it is handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedDuel {
    /// Its signed name.
    pub duel_id: String,
    /// Id of the ranker to show left.
    pub left: String,
    /// Id of the ranker to show right.
    pub right: String,
    /// Whether both are one ranker.
    pub self_duel: bool,
    /// Unix milliseconds.
    pub expires_at: i64,
    /// Log position that it was chosen at.
    pub state: u64,
    /// The batch it belongs to.
    pub batch: Option<u32>,
}

impl Service {
    /// Start serving from `store`, whose schema must be current. Starts the writer and the follower
    /// on the running tokio runtime.
    pub async fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: ServiceSettings,
    ) -> Result<Arc<Self>, ServiceError> {
        let no_entropy =
            |error| ServiceError::Internal(format!("the system gives no randomness: {error}"));
        let keys = SigningKeys::load(Arc::clone(&store), clock.now_ms()).await?;
        let access = Arc::new(AccessKeys::load(store.clone()).await?);
        // the highest bit is kept for nonces that are not drawn
        let process = entropy::number().map_err(no_entropy)? >> 1;
        let registry = Arc::new(Registry::new(
            Arc::clone(&store),
            process,
            Arc::clone(&metrics),
            clock.now_ms(),
            settings.memory_bytes,
        ));
        let writer =
            Writer::start(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&metrics), &settings);
        let service = Arc::new(Self {
            store,
            clock,
            registry,
            writer,
            keys,
            access,
            metrics,
            process,
            counter: AtomicU64::new(0),
            chance_seed: entropy::number().map_err(no_entropy)?,
            plans: Arc::new(PlanCache::new(PLANS_KEPT)),
            idle_after_ms: i64::try_from(settings.idle_after.as_millis()).unwrap_or(i64::MAX),
            background: Mutex::default(),
        });
        let told = Arc::new(PendingNotices::default());
        let this = || Arc::downgrade(&service);
        let mut background = service.background.lock().unwrap_or_else(PoisonError::into_inner);
        background.push(tokio::spawn(replication::follow(
            this(),
            Arc::clone(&told),
            settings.poll_every,
        )));
        background.push(tokio::spawn(maintenance::run_maintenance(this())));
        if settings.listen {
            background.push(tokio::spawn(replication::listen(Arc::clone(&service.store), told)));
        }
        drop(background);
        Ok(service)
    }

    /// Whether the database answers and has this program's schema.
    pub async fn check(&self) -> Result<(), ServiceError> {
        Ok(self.store.check().await?)
    }

    /// Write what is only in memory, then close the store. Call when no request is running any
    /// more.
    pub async fn shutdown(self: &Arc<Self>) {
        for task in self.background.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
        // twice: what a flush that failed was to write is written first, under its own nonce
        self.flush_self_duels().await;
        self.flush_self_duels().await;
        self.note_uses_and_batches().await;
        if let Err(error) = self.keep_snapshots().await {
            tracing::warn!(%error, "no snapshot at shutdown; the next start folds more of the log");
        }
        self.store.close().await;
    }

    /// The API keys of the database.
    pub fn access(&self) -> &Arc<AccessKeys> {
        &self.access
    }

    /// Unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// A session as text that this service knows again, at whatever replica.
    pub fn seal_session(&self, content: &[u8]) -> String {
        self.keys.seal_session(content, self.clock.now_ms())
    }

    /// What [`Service::seal_session`] was given; `None` where the text is none that it made.
    pub fn open_session(&self, text: &str) -> Option<Vec<u8>> {
        self.keys.open_session(text)
    }

    /// Entries of the audit log before entry `before`, newest first.
    pub async fn audit_log(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, ServiceError> {
        Ok(self.store.audit(experiment, before, limit).await?)
    }

    /// How many experiments were asked for and cannot be read by this program.
    pub fn refused(&self) -> usize {
        self.registry.refused()
    }

    /// The experiments in memory, by name.
    pub fn loaded(&self) -> Vec<Arc<LoadedExperiment>> {
        self.registry.all()
    }

    /// The experiment with this name, if it is in memory. Looking on does not keep it there.
    pub fn peek(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        self.registry.peek(name)
    }

    /// The experiment with this name, in memory.
    pub async fn experiment(&self, name: &str) -> Result<Arc<LoadedExperiment>, ServiceError> {
        if name_error(name).is_some() {
            return Err(ServiceError::NotFound(name.into()));
        }
        self.registry.get(name).await
    }

    /// Choose a duel. Reads memory only, once the experiment is there.
    pub async fn next_duel(&self, name: &str) -> Result<IssuedDuel, ServiceError> {
        let loaded = self.experiment(name).await?;
        self.choose(&loaded)
    }

    /// The experiment with this name, if it is in memory.
    pub fn in_memory(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        self.registry.in_memory(name)
    }

    /// Choose a duel of an experiment that is in memory.
    pub fn choose(&self, loaded: &LoadedExperiment) -> Result<IssuedDuel, ServiceError> {
        let name = &loaded.name;
        let (status, winner, archived) = loaded
            .with_record(|record| (record.status, record.winner, record.archived_at.is_some()));
        if archived {
            return Err(ServiceError::Archived(name.clone()));
        }
        if status == Status::Paused {
            return Err(ServiceError::Paused(name.clone()));
        }
        let (mut rng, step) = self.rng();
        let now = self.clock.now_ms();
        let (selection, state) = match (status, winner) {
            (Status::Concluded, Some(winner)) => {
                (Selection::of(winner.into(), winner.into()), loaded.fold()?.position())
            }
            _ => {
                let (selection, state) = loaded.select(&mut rng, now)?;
                if selection.duel.is_self() {
                    loaded.count_self_duel(selection.duel.first);
                }
                (selection, state)
            }
        };
        Ok(self.issue(loaded, &selection, state, step, &mut rng, now))
    }

    /// Sign a selection.
    pub(crate) fn issue(
        &self,
        loaded: &LoadedExperiment,
        selection: &Selection,
        state: u64,
        step: u64,
        rng: &mut PolicyRng,
        now: i64,
    ) -> IssuedDuel {
        let duel = selection.duel;
        let first_left = rng.random::<bool>();
        let expires_at = now + i64::from(loaded.spec.duel_ttl_seconds) * 1000;
        let token = DuelToken {
            experiment: loaded.id,
            first: duel.first as u16,
            second: duel.second as u16,
            first_left,
            batch: selection.batch,
            ticket: selection.ticket,
            chosen_at: state,
            issued_at: now,
            expires_at,
            nonce: self.nonce(step),
        };
        trace::issued(token.nonce);
        let (left, right) =
            if first_left { (duel.first, duel.second) } else { (duel.second, duel.first) };
        if duel.is_self() {
            loaded.traffic().alone();
        } else {
            loaded.traffic().issued();
        }
        self.metrics.duel(match (duel.is_self(), selection.batch) {
            (true, _) => DuelKind::SelfDuel,
            (false, Some(_)) => DuelKind::Batch,
            (false, None) => DuelKind::Pair,
        });
        IssuedDuel {
            duel_id: self.keys.sign(&token),
            left: loaded.spec.rankers[left].id.clone(),
            right: loaded.spec.rankers[right].id.clone(),
            self_duel: duel.is_self(),
            expires_at,
            state,
            batch: selection.batch,
        }
    }

    /// The generator and running number of one selection.
    pub(crate) fn rng(&self) -> (PolicyRng, u64) {
        let step = self.counter.fetch_add(1, Ordering::Relaxed);
        (step_rng(self.chance_seed, step), step)
    }

    fn nonce(&self, step: u64) -> Nonce {
        u128::from(self.process) << 64 | u128::from(step)
    }

    pub(crate) fn fresh_nonce(&self) -> Nonce {
        self.nonce(self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// Duels of an experiment that this process has handed out and that are neither answered nor
    /// expired.
    pub fn in_flight(&self, loaded: &LoadedExperiment) -> Result<u64, ServiceError> {
        loaded.outstanding(self.clock.now_ms(), |in_flight| in_flight.total())
    }

    /// Append an event that is not an outcome; the position it has in the log.
    pub(crate) async fn append_control(
        &self,
        loaded: &Arc<LoadedExperiment>,
        nonce: Nonce,
        event: ControlEvent,
    ) -> Result<Appended, ServiceError> {
        let appended =
            self.writer.append(loaded, vec![NewEvent::new(nonce, Event::Control(event))]).await?;
        appended
            .first()
            .copied()
            .ok_or_else(|| ServiceError::Internal("the store answered for no event".into()))
    }
}
