//! The use cases: create an experiment, ask for a duel, report an outcome.
//!
//! Reading what came of it is in `standings.rs` and `batches.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::RngExt;
use tokio::task::JoinHandle;

use super::error::ServiceError;
use super::live::Live;
use super::registry::Registry;
use super::spec::{ExperimentSpec, FieldError, name_error};
use super::token::{DuelToken, Keyring};
use super::writer::Writer;
use crate::clock::SharedClock;
use crate::entropy;
use crate::policy::{Answer, Chance, Selection, fold_chance};
use crate::store::{
    Appended, Change, Changed, Created, Event, ExperimentRecord, LogEntry, NewEvent, NewExperiment, Nonce,
    OtherEvent, OutcomeEvent, SharedStore, SigningKey, Status, StoreError,
};
use crate::telemetry::metrics::{DuelKind, FeedbackStatus, Metrics};

/// How often a process looks at what other processes have appended.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// A round of following that takes longer is given up on, so that a database that hangs holds nothing up once it is
/// back. What was folded until then stays folded.
const FOLLOW_WITHIN: Duration = Duration::from_secs(10);
/// How often self-duels are appended to the log: every so many rounds of following.
const FLUSH_EVERY_ROUNDS: u32 = 4;

/// What a service can be tuned by.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Events that may wait for a commit; beyond that feedback is refused with "try again".
    pub queue_events_max: usize,
    /// A commit that takes longer is given up on: whether it was kept is then unknown, and a repeat finds out. Below
    /// the time limit of requests, so that the caller is told.
    pub commit_within: Duration,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self { queue_events_max: 100_000, commit_within: Duration::from_secs(8) }
    }
}

/// Everything the API does, without HTTP.
pub struct Service {
    pub(super) store: SharedStore,
    pub(super) clock: SharedClock,
    registry: Arc<Registry>,
    writer: Writer,
    keys: Keyring,
    metrics: Arc<Metrics>,
    /// High half of this process's nonces.
    process: u64,
    /// Low half of the next nonce; also the step of the generator of the next selection.
    counter: AtomicU64,
    chance_seed: u64,
    follower: std::sync::Mutex<Option<JoinHandle<()>>>,
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

/// What the searcher said, as it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownOutcome {
    /// The left ranker won.
    Left,
    /// The right ranker won.
    Right,
    /// Equal credit, and not none.
    Tie,
    /// No click.
    None,
}

/// The answer to one duel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// The `duel_id` as it was handed out.
    pub duel_id: String,
    /// What it came to.
    pub outcome: ShownOutcome,
}

/// What became of one piece of feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It counts, and stands in the log at this position.
    Recorded(u64),
    /// The same answer counted already, at this position.
    Duplicate(u64),
    /// Another answer of this duel counted already, at this position; that one stands.
    Conflict(u64),
    /// It came after the duel's time.
    Expired {
        /// Unix milliseconds at which the duel expired.
        expired_at: i64,
    },
    /// It names no duel of this experiment.
    Invalid(String),
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
        let fresh_key = SigningKey {
            id: (entropy::number().map_err(no_entropy)? >> 33) as u32,
            secret: entropy::bytes().map_err(no_entropy)?,
            created_at: clock.now_ms(),
        };
        let keys = Keyring::new(&store.ensure_signing_key(&fresh_key).await?)
            .ok_or_else(|| ServiceError::Internal("the store has no signing key".into()))?;
        // the highest bit is kept for nonces that are not drawn
        let process = entropy::number().map_err(no_entropy)? >> 1;
        let registry = Arc::new(Registry::new(Arc::clone(&store), process));
        let writer = Writer::start(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&metrics), &settings);
        let service = Arc::new(Self {
            store,
            clock,
            registry,
            writer,
            keys,
            metrics,
            process,
            counter: AtomicU64::new(0),
            chance_seed: entropy::number().map_err(no_entropy)?,
            follower: std::sync::Mutex::new(None),
        });
        let follower = tokio::spawn(follow(Arc::downgrade(&service)));
        *service.follower.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(follower);
        Ok(service)
    }

    /// Whether the database answers and has this program's schema.
    pub async fn check(&self) -> Result<(), ServiceError> {
        Ok(self.store.check().await?)
    }

    /// Write what is only in memory, then close the store. Call when no request is running any more.
    pub async fn shutdown(&self) {
        let follower = self.follower.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(follower) = follower {
            follower.abort();
        }
        // twice: what a flush that failed was to write is written first, under its own nonce
        self.flush_self_duels().await;
        self.flush_self_duels().await;
        if let Err(error) = self.registry.keep_snapshots(self.clock.now_ms()).await {
            tracing::warn!(%error, "no snapshot at shutdown; the next start folds more of the log");
        }
        self.store.close().await;
    }

    /// The experiments in memory, by name.
    pub fn loaded(&self) -> Vec<Arc<Live>> {
        self.registry.all()
    }

    /// The experiment with this name, in memory.
    pub async fn experiment(&self, name: &str) -> Result<Arc<Live>, ServiceError> {
        if name_error(name).is_some() {
            return Err(ServiceError::NotFound(name.into()));
        }
        self.registry.get(name).await
    }

    /// Create an experiment, or find that the same request created it before. The flag says whether it is new.
    pub async fn create(&self, name: &str, spec: &ExperimentSpec) -> Result<(Arc<Live>, bool), ServiceError> {
        let errors: Vec<_> = name_error(name).into_iter().chain(spec.errors()).collect();
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        let seed = match spec.seed {
            Some(seed) => seed,
            None => entropy::number().map_err(|error| {
                ServiceError::Internal(format!("the system gives no randomness: {error}"))
            })?,
        };
        let canonical = serde_json::to_string(spec)
            .map_err(|error| ServiceError::Internal(format!("the spec does not serialise: {error}")))?;
        let new = NewExperiment { name: name.into(), spec: canonical, seed, created_at: self.clock.now_ms() };
        let is_new = match self.store.create_experiment(&new).await? {
            Created::New(_) => true,
            Created::Taken(record) if record.archived_at.is_some() => {
                return Err(ServiceError::Archived(name.into()));
            }
            Created::Taken(record) => {
                // compared as values: an older program may have written the text differently
                let existing: Option<ExperimentSpec> = serde_json::from_str(&record.spec).ok();
                if existing.as_ref() != Some(spec) {
                    return Err(ServiceError::Exists(name.into()));
                }
                false
            }
        };
        Ok((self.registry.get(name).await?, is_new))
    }

    /// Experiments that are not archived, by name, after `after`.
    pub async fn list(&self, after: Option<&str>, limit: u32) -> Result<Vec<ExperimentRecord>, ServiceError> {
        Ok(self.store.experiments(after, limit).await?)
    }

    /// Set an experiment's status if it is still at `expected_version` (`None`: whatever it is at). Concluding names
    /// the winner: the given one or the policy's champion.
    pub async fn set_status(
        &self,
        name: &str,
        expected_version: Option<u64>,
        status: Status,
        winner: Option<&str>,
    ) -> Result<Arc<Live>, ServiceError> {
        let live = self.experiment(name).await?;
        loop {
            let record = self.newest_record(&live).await?;
            refuse_archived(&record)?;
            check_version(&record, expected_version)?;
            let winner = winner_to_be(&live, &record, status, winner)?;
            if record.status == status && record.winner == winner {
                return Ok(live);
            }
            let change = Change { status: Some(status), winner: Some(winner), archived_at: None };
            let event = OtherEvent::Status { status, winner, archived: false };
            match self.change(&live, &record, change, event).await {
                // somebody was faster; who does not care what it was goes on from what it is
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                done => return done.map(|()| live),
            }
        }
    }

    /// Archive a concluded experiment: it is listed no more and nothing is added to it. Its log stays. Done twice is
    /// done.
    pub async fn archive(&self, name: &str, expected_version: Option<u64>) -> Result<(), ServiceError> {
        let live = self.experiment(name).await?;
        loop {
            let record = self.newest_record(&live).await?;
            if record.archived_at.is_some() {
                return Ok(());
            }
            check_version(&record, expected_version)?;
            if record.status != Status::Concluded {
                return Err(ServiceError::NotConcluded(name.into()));
            }
            let change = Change { archived_at: Some(self.clock.now_ms()), ..Change::default() };
            let event = OtherEvent::Status { status: record.status, winner: record.winner, archived: true };
            match self.change(&live, &record, change, event).await {
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                done => return done,
            }
        }
    }

    /// The record as the store has it: a change is judged by what is, and not by what this process remembers from
    /// before another one changed it.
    async fn newest_record(&self, live: &Live) -> Result<ExperimentRecord, ServiceError> {
        let record = self.store.experiment(&live.name).await?;
        let record = record.ok_or_else(|| ServiceError::NotFound(live.name.clone()))?;
        live.set_record(record.clone());
        Ok(record)
    }

    async fn change(
        &self,
        live: &Arc<Live>,
        seen: &ExperimentRecord,
        change: Change,
        event: OtherEvent,
    ) -> Result<(), ServiceError> {
        let event = NewEvent { nonce: self.fresh_nonce(), event: Event::Other(event) };
        let now = self.clock.now_ms();
        match self.store.change_experiment(live.id, seen.version, &change, event, now).await? {
            Changed::Done(record) => {
                live.set_record(record);
                if let Err(error) = live.catch_up(&*self.store).await {
                    // it is done and durable, so it is acknowledged all the same; the follower folds it later
                    tracing::error!(%error, experiment = live.name, "a change could not be folded yet");
                }
                Ok(())
            }
            Changed::Stale(record) => {
                let current = record.version;
                live.set_record(record);
                Err(ServiceError::Stale { expected: seen.version, current })
            }
            Changed::Missing => Err(ServiceError::NotFound(live.name.clone())),
        }
    }

    /// Choose a duel. Reads memory only.
    pub async fn next_duel(&self, name: &str) -> Result<IssuedDuel, ServiceError> {
        let live = self.experiment(name).await?;
        let (status, winner, archived) =
            live.with_record(|record| (record.status, record.winner, record.archived_at.is_some()));
        if archived {
            return Err(ServiceError::Archived(name.into()));
        }
        if status == Status::Paused {
            return Err(ServiceError::Paused(name.into()));
        }
        let step = self.counter.fetch_add(1, Ordering::Relaxed);
        let mut chance = fold_chance(self.chance_seed, step);
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
        Ok(self.issue(&live, &selection, state, step, &mut chance, now))
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
        let (left, right) = if first_left { (duel.first, duel.second) } else { (duel.second, duel.first) };
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

    fn fresh_nonce(&self) -> Nonce {
        self.nonce(self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// Duels of an experiment that this process has handed out and that are neither answered nor expired.
    pub fn in_flight(&self, live: &Live) -> Result<u64, ServiceError> {
        live.outstanding(self.clock.now_ms(), |in_flight| in_flight.total())
    }

    /// Take in answers. Returns when what counts is durable; one result each, in order.
    pub async fn receive(&self, name: &str, feedback: &[Feedback]) -> Result<Vec<Received>, ServiceError> {
        let live = self.experiment(name).await?;
        live.with_record(refuse_archived)?;
        let now = self.clock.now_ms();
        let checked: Vec<_> = feedback.iter().map(|item| self.check_feedback(&live, item, now)).collect();
        let fresh: Vec<_> = checked
            .iter()
            .filter_map(|checked| match checked {
                Checked::Fresh(event) => Some(event.clone()),
                _ => None,
            })
            .collect();
        let late: Vec<_> = checked
            .iter()
            .filter_map(|checked| match checked {
                Checked::Late { event, .. } => Some(event.nonce),
                _ => None,
            })
            .collect();
        let mut found =
            if late.is_empty() { Vec::new() } else { self.store.find(live.id, &late).await? }.into_iter();
        let mut appended = self.writer.append(&live, fresh).await?.into_iter();
        let missing =
            || ServiceError::Internal("the store answered for fewer events than it was given".into());
        checked
            .into_iter()
            .map(|checked| {
                Ok(match checked {
                    Checked::Invalid(detail) => Received::Invalid(detail),
                    Checked::Late { event, expired_at } => {
                        late_answer(&event, expired_at, found.next().ok_or_else(missing)?)
                    }
                    Checked::Fresh(_) => match appended.next().ok_or_else(missing)? {
                        Appended::Recorded(position) => Received::Recorded(position),
                        Appended::Duplicate(position) => Received::Duplicate(position),
                        Appended::Conflict(position) => Received::Conflict(position),
                        Appended::Missing => return Err(ServiceError::NotFound(name.into())),
                    },
                })
            })
            .inspect(|result| {
                if let Ok(received) = result {
                    self.metrics.feedback(received.status());
                }
            })
            .collect()
    }

    fn check_feedback(&self, live: &Live, feedback: &Feedback, now: i64) -> Checked {
        let token = match self.keys.verify(&feedback.duel_id) {
            Ok(token) => token,
            Err(error) => return Checked::Invalid(format!("`duel_id` is not valid: {error}")),
        };
        if token.experiment != live.id {
            return Checked::Invalid("`duel_id` belongs to another experiment".into());
        }
        let answer = match (feedback.outcome, token.first_left) {
            (ShownOutcome::Left, true) | (ShownOutcome::Right, false) => Answer::First,
            (ShownOutcome::Left, false) | (ShownOutcome::Right, true) => Answer::Second,
            (ShownOutcome::Tie, _) => Answer::Tie,
            (ShownOutcome::None, _) => Answer::None,
        };
        let event = NewEvent {
            nonce: token.nonce,
            event: Event::Outcome(OutcomeEvent {
                first: token.first,
                second: token.second,
                first_left: token.first_left,
                answer,
                batch: token.batch,
                ticket: token.ticket,
                chosen_at: token.chosen_at,
                issued_at: token.issued_at,
            }),
        };
        if now > token.expires_at {
            Checked::Late { event, expired_at: token.expires_at }
        } else {
            Checked::Fresh(event)
        }
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

    /// Append the self-duels that were handed out since the last time. What cannot be written now is written later.
    async fn flush_self_duels(&self) {
        for live in self.registry.all() {
            let Some((nonce, counts)) = live.self_duels_to_flush(|| self.fresh_nonce()) else { continue };
            match self.append_other(&live, nonce, OtherEvent::SelfDuels { counts }).await {
                Ok(_) => live.self_duels_settled(nonce),
                Err(error) => {
                    tracing::warn!(%error, experiment = live.name, "self-duels are not in the log yet");
                }
            }
        }
    }
}

/// Feedback after its token was looked at.
enum Checked {
    Fresh(NewEvent),
    Late { event: NewEvent, expired_at: i64 },
    Invalid(String),
}

/// What a late answer is told: a repeat of one that counted in time is still a repeat.
fn late_answer(event: &NewEvent, expired_at: i64, found: Option<LogEntry>) -> Received {
    match found {
        Some(entry) if entry.event == event.event => Received::Duplicate(entry.position),
        Some(entry) => Received::Conflict(entry.position),
        None => Received::Expired { expired_at },
    }
}

impl Received {
    /// What it is counted as.
    pub fn status(&self) -> FeedbackStatus {
        match self {
            Self::Recorded(_) => FeedbackStatus::Recorded,
            Self::Duplicate(_) => FeedbackStatus::Duplicate,
            Self::Conflict(_) => FeedbackStatus::Conflict,
            Self::Expired { .. } => FeedbackStatus::Expired,
            Self::Invalid(_) => FeedbackStatus::Invalid,
        }
    }
}

fn refuse_archived(record: &ExperimentRecord) -> Result<(), ServiceError> {
    match record.archived_at {
        Some(_) => Err(ServiceError::Archived(record.name.clone())),
        None => Ok(()),
    }
}

/// The winner that an experiment of this record is given along with `status`.
fn winner_to_be(
    live: &Live,
    record: &ExperimentRecord,
    status: Status,
    winner: Option<&str>,
) -> Result<Option<u16>, ServiceError> {
    let refuse = |detail: String| Err(ServiceError::Invalid(vec![FieldError::new("/winner", detail)]));
    Ok(match (status, winner) {
        (Status::Concluded, Some(id)) => match live.spec.ranker_index(id) {
            Some(index) => Some(index as u16),
            None => return refuse(format!("experiment `{}` has no ranker `{id}`", live.name)),
        },
        (Status::Concluded, None) if record.status == Status::Concluded => record.winner,
        (Status::Concluded, None) => Some(live.fold()?.policy().champion() as u16),
        (_, Some(_)) => return refuse("`winner` goes with the status `concluded` only".into()),
        (_, None) => None,
    })
}

fn check_version(record: &ExperimentRecord, expected: Option<u64>) -> Result<(), ServiceError> {
    match expected {
        Some(expected) if expected != record.version => {
            Err(ServiceError::Stale { expected, current: record.version })
        }
        _ => Ok(()),
    }
}

/// Keep up with other processes, append self-duels, keep snapshots; until the service is gone.
async fn follow(service: std::sync::Weak<Service>) {
    let mut ticks = tokio::time::interval(FOLLOW_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failing = false;
    for round in 0u32.. {
        ticks.tick().await;
        let Some(service) = service.upgrade() else { return };
        if round % FLUSH_EVERY_ROUNDS == 0 {
            service.flush_self_duels().await;
        }
        let following = async {
            service.registry.follow().await?;
            service.registry.keep_snapshots(service.clock.now_ms()).await
        };
        let followed = tokio::time::timeout(FOLLOW_WITHIN, following)
            .await
            .unwrap_or_else(|_| Err(StoreError::Slow(FOLLOW_WITHIN).into()));
        // once when it starts and once when it ends, not twice a second
        match followed {
            Ok(()) if failing => {
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
