//! What a process does for its experiments: starts, hands out duels, follows the store, stops.
//!
//! The other use cases: `lifecycle.rs`, `pages.rs`, `receive.rs`, `standings.rs`, `batches.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tokio::task::JoinHandle;

use super::error::ServiceError;
use super::following::{self, Told};
use super::live::Live;
use super::registry::Registry;
use super::signing::SigningKeys;
use super::spec::name_error;
use super::token::DuelToken;
use super::upkeep;
use super::writer::Writer;
use crate::access::AccessKeys;
use crate::clock::SharedClock;
use crate::entropy;
use crate::interleave::PlanCache;
use crate::policy::{Chance, Selection, fold_chance};
use crate::store::{Appended, AuditRecord, Event, NewEvent, Nonce, OtherEvent, SharedStore, Status};
use crate::telemetry::metrics::{DuelKind, Metrics};
use crate::telemetry::trace;

/// Linear programs whose solutions are kept; each takes some kilobytes.
const PLANS_KEPT: usize = 1000;

/// What a service can be tuned by.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Events that may wait for a commit; beyond that feedback is refused with "try again".
    pub queue_events_max: usize,
    /// A commit that takes longer is given up on: whether it was kept is then unknown, and a repeat finds out. Below
    /// the time limit of requests, so that the caller is told.
    pub commit_within: Duration,
    /// How often to look at what other processes have appended. They also tell, which is faster.
    pub poll_every: Duration,
    /// Whether to listen to what the database tells.
    pub listen: bool,
    /// An experiment that nobody has asked for in this time is dropped from memory.
    pub idle_after: Duration,
    /// Estimated bytes that experiments may take in memory together; beyond that the longest unused are dropped.
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
    pub(super) store: SharedStore,
    pub(super) clock: SharedClock,
    pub(super) registry: Arc<Registry>,
    pub(super) writer: Writer,
    pub(super) keys: SigningKeys,
    pub(super) access: Arc<AccessKeys>,
    pub(super) metrics: Arc<Metrics>,
    /// High half of this process's nonces.
    process: u64,
    /// Low half of the next nonce; also the step of the generator of the next selection.
    counter: AtomicU64,
    chance_seed: u64,
    /// Solved linear programs of optimized interleaving.
    pub(super) plans: Arc<PlanCache>,
    pub(super) idle_after_ms: i64,
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
    /// Start serving from `store`, whose schema must be current. Starts the writer and the follower on the running
    /// tokio runtime.
    pub async fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: ServiceSettings,
    ) -> Result<Arc<Self>, ServiceError> {
        let no_entropy = |error| ServiceError::Internal(format!("the system gives no randomness: {error}"));
        let keys = SigningKeys::load(Arc::clone(&store), clock.now_ms()).await?;
        let access = Arc::new(AccessKeys::load(Arc::clone(&store)).await?);
        // the highest bit is kept for nonces that are not drawn
        let process = entropy::number().map_err(no_entropy)? >> 1;
        let registry = Arc::new(Registry::new(
            Arc::clone(&store),
            process,
            Arc::clone(&metrics),
            clock.now_ms(),
            settings.memory_bytes,
        ));
        let writer = Writer::start(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&metrics), &settings);
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
        let told = Arc::new(Told::default());
        let this = || Arc::downgrade(&service);
        let mut background = service.background.lock().unwrap_or_else(PoisonError::into_inner);
        background.push(tokio::spawn(following::follow(this(), Arc::clone(&told), settings.poll_every)));
        background.push(tokio::spawn(upkeep::keep_up(this())));
        if settings.listen {
            background.push(tokio::spawn(following::listen(Arc::clone(&service.store), told)));
        }
        drop(background);
        Ok(service)
    }

    /// Whether the database answers and has this program's schema.
    pub async fn check(&self) -> Result<(), ServiceError> {
        Ok(self.store.check().await?)
    }

    /// Write what is only in memory, then close the store. Call when no request is running any more.
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
    pub fn loaded(&self) -> Vec<Arc<Live>> {
        self.registry.all()
    }

    /// The experiment with this name, if it is in memory. Looking on does not keep it there.
    pub fn glance(&self, name: &str) -> Option<Arc<Live>> {
        self.registry.glance(name)
    }

    /// The experiment with this name, in memory.
    pub async fn experiment(&self, name: &str) -> Result<Arc<Live>, ServiceError> {
        if name_error(name).is_some() {
            return Err(ServiceError::NotFound(name.into()));
        }
        self.registry.get(name).await
    }

    /// Choose a duel. Reads memory only, once the experiment is there.
    pub async fn next_duel(&self, name: &str) -> Result<IssuedDuel, ServiceError> {
        let live = self.experiment(name).await?;
        self.choose(&live)
    }

    /// The experiment with this name, if it is in memory.
    pub fn in_memory(&self, name: &str) -> Option<Arc<Live>> {
        self.registry.in_memory(name)
    }

    /// Choose a duel of an experiment that is in memory.
    pub fn choose(&self, live: &Live) -> Result<IssuedDuel, ServiceError> {
        let name = &live.name;
        let (status, winner, archived) =
            live.with_record(|record| (record.status, record.winner, record.archived_at.is_some()));
        if archived {
            return Err(ServiceError::Archived(name.clone()));
        }
        if status == Status::Paused {
            return Err(ServiceError::Paused(name.clone()));
        }
        let (mut chance, step) = self.chance();
        let now = self.clock.now_ms();
        let (selection, state) = match (status, winner) {
            (Status::Concluded, Some(winner)) => {
                (Selection::of(winner.into(), winner.into()), live.fold()?.position())
            }
            _ => {
                let (selection, state) = live.select(&mut chance, now)?;
                if selection.duel.is_self() {
                    live.count_self_duel(selection.duel.first);
                }
                (selection, state)
            }
        };
        Ok(self.issue(live, &selection, state, step, &mut chance, now))
    }

    /// Sign a selection.
    pub(super) fn issue(
        &self,
        live: &Live,
        selection: &Selection,
        state: u64,
        step: u64,
        chance: &mut Chance,
        now: i64,
    ) -> IssuedDuel {
        let duel = selection.duel;
        let first_left = chance.random::<bool>();
        let expires_at = now + i64::from(live.spec.duel_ttl_seconds) * 1000;
        let token = DuelToken {
            experiment: live.id,
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
        let (left, right) = if first_left { (duel.first, duel.second) } else { (duel.second, duel.first) };
        if duel.is_self() {
            live.traffic().alone();
        } else {
            live.traffic().issued();
        }
        self.metrics.duel(match (duel.is_self(), selection.batch) {
            (true, _) => DuelKind::SelfDuel,
            (false, Some(_)) => DuelKind::Batch,
            (false, None) => DuelKind::Pair,
        });
        IssuedDuel {
            duel_id: self.keys.sign(&token),
            left: live.spec.rankers[left].id.clone(),
            right: live.spec.rankers[right].id.clone(),
            self_duel: duel.is_self(),
            expires_at,
            state,
            batch: selection.batch,
        }
    }

    /// The generator and running number of one selection.
    pub(super) fn chance(&self) -> (Chance, u64) {
        let step = self.counter.fetch_add(1, Ordering::Relaxed);
        (fold_chance(self.chance_seed, step), step)
    }

    fn nonce(&self, step: u64) -> Nonce {
        u128::from(self.process) << 64 | u128::from(step)
    }

    pub(super) fn fresh_nonce(&self) -> Nonce {
        self.nonce(self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// Duels of an experiment that this process has handed out and that are neither answered nor expired.
    pub fn in_flight(&self, live: &Live) -> Result<u64, ServiceError> {
        live.outstanding(self.clock.now_ms(), |in_flight| in_flight.total())
    }

    /// Append an event that is not an outcome; the position it has in the log.
    pub(super) async fn append_other(
        &self,
        live: &Arc<Live>,
        nonce: Nonce,
        event: OtherEvent,
    ) -> Result<Appended, ServiceError> {
        let appended = self.writer.append(live, vec![NewEvent { nonce, event: Event::Other(event) }]).await?;
        appended
            .first()
            .copied()
            .ok_or_else(|| ServiceError::Internal("the store answered for no event".into()))
    }
}
