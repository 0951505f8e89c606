//! Runs a list of operations on the real service, and compares its responses and the final log with
//! the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use dueling_bandits::Answer;
use rankduel::service::change::change;
use rankduel::service::error::ServiceError;
use rankduel::service::feedback::{self, Feedback, FeedbackContent, Receipt};
use rankduel::service::reports::fold_copy::FoldCopy;
use rankduel::service::reports::standings::standings_of;
use rankduel::service::units::NamedAudience;
use rankduel::service::verify::verify;
use rankduel::service::{Service, ServiceSettings, lifecycle};
use rankduel_engine::access::Actor;
use rankduel_engine::clock::{Clock as _, ManualClock};
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{ExperimentSpec, Patch, Ranker};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::Metrics;
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_store::events::Event;
use rankduel_store::{SharedStore, Snapshot, connect};
use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::model::Duel;
use super::op::{Commit, Op, Outcome, REPLICAS};
use crate::support::failing_store::{FailingStore, Mode};
use crate::support::service::START_MS;

const NAMES: [&str; 3] = ["steady", "thompson", "batches"];
const TTL_SECONDS: u32 = 60;
/// The experiment with roster changes.
const OPEN: usize = 1;
/// Its initial rankers.
const INITIAL_RANKERS: [&str; 3] = ["a", "b", "c"];

fn spec(name: &str) -> ExperimentSpec {
    let policy = match name {
        "steady" => json!({"kind": "pcomp", "horizon": 1_000_000, "batches": 1}),
        "thompson" => json!({"kind": "d-ts-plus"}),
        _ => json!({"kind": "scomp2", "horizon": 200}),
    };
    let spec = json!({"rankers": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "policy": policy, "ties": "coin",
        "duel_ttl_seconds": TTL_SECONDS, "seed": 7});
    serde_json::from_value(spec).expect("a spec")
}

struct Replica {
    store: Arc<FailingStore>,
    clock: ManualClock,
    service: Arc<Service>,
}

struct World {
    /// The store of all processes.
    store: SharedStore,
    /// The defect of each process's store.
    defect: Mode,
    replicas: Vec<Replica>,
    duels: Vec<Duel>,
    /// Ids of all rankers that [`OPEN`] has ever had.
    rankers: Vec<String>,
    /// The retired ones, in order.
    retired: Vec<String>,
    /// How many of `retired` each process must know.
    known: [usize; REPLICAS],
}

/// Run `ops` on a store that is [`Mode::Fine`] or has a defect. The error describes the first
/// difference from the model.
pub fn run(ops: &[Op], defect: Mode) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // In memory where possible, because the disk does not matter here.
        let memory = std::path::Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("a folder");
        let url = format!("sqlite://{}/rankduel.db", folder.path().display());
        let mut world = World::begin(&url, defect).await;
        for (number, op) in ops.iter().enumerate() {
            world
                .step(op)
                .await
                .map_err(|wrong| format!("operation {}, {op:?}: {wrong}", number + 1))?;
        }
        let ended = world.check_log(&url).await;
        world.store.close().await;
        ended
    })
}

impl World {
    async fn begin(url: &str, defect: Mode) -> Self {
        let store = connect(url).await.expect("a store");
        store.migrate().await.expect("a schema");
        let mut world = Self {
            store,
            defect,
            replicas: Vec::new(),
            duels: Vec::new(),
            rankers: INITIAL_RANKERS.map(str::to_owned).to_vec(),
            retired: Vec::new(),
            known: [0; REPLICAS],
        };
        for _ in 0..REPLICAS {
            let replica = world.process(ManualClock::at(START_MS)).await;
            world.replicas.push(replica);
        }
        world
    }

    /// A new process that has loaded the experiments.
    async fn process(&self, clock: ManualClock) -> Replica {
        let store = FailingStore::new(Arc::clone(&self.store));
        let metrics = Arc::new(Metrics::new());
        let shared = Arc::new(clock.clone());
        let service =
            Service::start(store.clone(), shared, metrics, ServiceSettings::default()).await;
        let service = service.expect("a service");
        for name in NAMES {
            lifecycle::create(&service, name, &spec(name), &Actor::anyone())
                .await
                .expect("an experiment");
        }
        store.set(self.defect);
        Replica { store, clock, service }
    }

    async fn step(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Duel { replica, experiment } => self.duel(*replica, *experiment).await?,
            Op::Answer { replica, answers } => self.answer(*replica, answers, None).await?,
            Op::Fail { replica, answers, commit } => {
                self.answer(*replica, answers, Some(*commit)).await?
            }
            Op::Crash { replica, answers, commit } => {
                self.answer(*replica, answers, Some(*commit)).await?;
                self.replace(*replica).await;
            }
            Op::Race { duel, outcomes } => self.race(*duel, *outcomes).await?,
            Op::Clock { replica, milliseconds } => {
                self.replicas[*replica].clock.advance_ms(*milliseconds)
            }
            Op::Follow { replica } => self.follow(*replica).await?,
            Op::Snapshot { replica } => {
                for loaded in self.replicas[*replica].service.loaded() {
                    if loaded.snapshot_is_behind() {
                        let snapshot = loaded.snapshot(0).map_err(text_of)?;
                        self.store.save_snapshot(&snapshot).await.expect("a snapshot");
                        loaded.snapshot_saved(&snapshot);
                    }
                }
            }
            Op::Poison => {
                for loaded in self.replicas[0].service.loaded() {
                    let format = loaded.fold().map_err(text_of)?.format();
                    if let Some(kept) =
                        self.store.newest_snapshot(loaded.id, format).await.expect("a store")
                    {
                        let state = kept.state.iter().map(|byte| byte ^ 0x55).collect();
                        self.store
                            .save_snapshot(&Snapshot { state, ..kept })
                            .await
                            .expect("a snapshot");
                    }
                }
            }
            Op::Reload { replica } => {
                // Write the pending entries, as a stop does; the store stays open for the other
                // processes.
                for loaded in self.replicas[*replica].service.loaded() {
                    loaded.catch_up(&*self.store).await.map_err(text_of)?;
                }
                self.replace(*replica).await;
            }
            Op::Enlist { replica } => self.enlist(*replica).await?,
            Op::Retire { replica, ranker } => self.retire(*replica, *ranker).await?,
        }
        Ok(())
    }

    async fn replace(&mut self, replica: usize) {
        let clock = self.replicas[replica].clock.clone();
        self.replicas[replica] = self.process(clock).await;
        self.known[replica] = self.retired.len();
    }

    async fn enlist(&mut self, replica: usize) -> Result<(), String> {
        let id = format!("r{}", self.rankers.len());
        let ranker = Ranker { id: id.clone(), description: None };
        let service = &self.replicas[replica].service;
        // The second request finds the ranker.
        for _ in 0..2 {
            let enlist = Patch { enlist: Some(ranker.clone()), ..Patch::default() };
            change(service, NAMES[OPEN], None, &enlist, &Actor::anyone()).await.map_err(text_of)?;
        }
        self.rankers.push(id);
        self.known[replica] = self.retired.len();
        Ok(())
    }

    async fn retire(&mut self, replica: usize, ranker: usize) -> Result<(), String> {
        let id = self.rankers[ranker % self.rankers.len()].clone();
        let service = &self.replicas[replica].service;
        let before = self.retired.contains(&id);
        let must_stay = !before && self.rankers.len() - self.retired.len() == 2;
        let retire = Patch { retire: Some(id.clone()), ..Patch::default() };
        match change(service, NAMES[OPEN], None, &retire, &Actor::anyone()).await {
            Err(ServiceError::FixedRankers(_)) if must_stay => {}
            Ok(_) if !must_stay => {
                if !before {
                    self.retired.push(id);
                }
                self.known[replica] = self.retired.len();
            }
            other => {
                return Err(format!("to retire `{id}` was answered with {:?}", other.map(drop)));
            }
        }
        Ok(())
    }

    async fn duel(&mut self, replica: usize, experiment: usize) -> Result<(), String> {
        let duel = self.replicas[replica]
            .service
            .next_duel(NAMES[experiment], NamedAudience::default())
            .await
            .map_err(text_of)?;
        if experiment == OPEN {
            let gone = &self.retired[..self.known[replica]];
            let may_be = |id: &String| self.rankers.contains(id) && !gone.contains(id);
            if !may_be(&duel.left) || !may_be(&duel.right) {
                return Err(format!("{duel:?} shows a retired ranker: {gone:?}"));
            }
        }
        if !duel.self_duel {
            let issued_at = self.replicas[replica].service.now_ms();
            let (id, expires_at) = (duel.duel_id, issued_at + i64::from(TTL_SECONDS) * 1000);
            self.duels.push(Duel { id, experiment, expires_at, counted: None, position: None });
        }
        Ok(())
    }

    /// The duels with these numbers that belong to the first one's experiment.
    fn meant(&self, answers: &[(usize, Outcome)]) -> Vec<(usize, Outcome)> {
        let meant = |(duel, outcome): &(usize, Outcome)| (duel % self.duels.len(), *outcome);
        let mut meant: Vec<_> =
            answers.iter().filter(|_| !self.duels.is_empty()).map(meant).collect();
        if let Some((first, _)) = meant.first() {
            let experiment = self.duels[*first].experiment;
            meant.retain(|(duel, _)| self.duels[*duel].experiment == experiment);
        }
        meant
    }

    async fn answer(
        &mut self,
        replica: usize,
        answers: &[(usize, Outcome)],
        fails: Option<Commit>,
    ) -> Result<(), String> {
        let meant = self.meant(answers);
        let Some((first, _)) = meant.first() else { return Ok(()) };
        let name = NAMES[self.duels[*first].experiment];
        let Replica { store, clock, service } = &self.replicas[replica];
        let now = clock.now_ms();
        match fails {
            Some(Commit::Before) => store.set(Mode::FailsBefore),
            Some(Commit::After) => store.set(Mode::FailsAfter),
            None => {}
        }
        let received = receive(service, name, &self.duels, &meant).await;
        if fails.is_some() {
            store.set(self.defect);
        }
        // Late answers are only looked up, so a failure after a commit does not affect them.
        let is_late = |(duel, _): &(usize, Outcome)| self.duels[*duel].is_late(now);
        let must_fail = match fails {
            None => false,
            Some(Commit::Before) => true,
            Some(Commit::After) => !meant.iter().all(is_late),
        };
        match received {
            Err(ServiceError::Engine(EngineError::Store(_))) if must_fail => {
                if fails == Some(Commit::After) {
                    for (duel, outcome) in meant {
                        self.duels[duel].count(outcome, now);
                    }
                }
                Ok(())
            }
            Ok(received) if !must_fail => {
                // Late answers are looked up before the others are written.
                let (late, fresh): (Vec<_>, Vec<_>) =
                    meant.iter().zip(&received).partition(|(answer, _)| is_late(answer));
                for ((duel, outcome), received) in late.into_iter().chain(fresh) {
                    self.duels[*duel].hear(*outcome, now, received)?;
                }
                Ok(())
            }
            other => Err(format!("it was answered with {other:?}")),
        }
    }

    async fn race(&mut self, duel: usize, outcomes: [Outcome; REPLICAS]) -> Result<(), String> {
        if self.duels.is_empty() {
            return Ok(());
        }
        let duel = duel % self.duels.len();
        let name = NAMES[self.duels[duel].experiment];
        let answer = async |replica: usize| {
            let meant = [(duel, outcomes[replica])];
            receive(&self.replicas[replica].service, name, &self.duels, &meant).await
        };
        let (zero, one) = tokio::join!(answer(0), answer(1));
        let received = [zero.map_err(text_of)?.remove(0), one.map_err(text_of)?.remove(0)];
        // Either of them may have been first.
        let mut wrong = String::new();
        for order in [[0, 1], [1, 0]] {
            let mut after = self.duels[duel].clone();
            let mut hear = |replica: usize| {
                let now = self.replicas[replica].clock.now_ms();
                after.hear(outcomes[replica], now, &received[replica])
            };
            match order.into_iter().try_for_each(&mut hear) {
                Ok(()) => {
                    self.duels[duel] = after;
                    return Ok(());
                }
                Err(error) => wrong = error,
            }
        }
        Err(wrong)
    }

    async fn follow(&mut self, replica: usize) -> Result<(), String> {
        for loaded in self.replicas[replica].service.loaded() {
            loaded.catch_up(&*self.store).await.map_err(text_of)?;
        }
        self.known[replica] = self.retired.len();
        Ok(())
    }

    /// The active rankers match the model, and the database verifies without findings.
    async fn check_rankers(&self) -> Result<(), String> {
        for name in NAMES {
            let findings = verify(&*self.store, name).await.expect("a store");
            if !findings.wrong.is_empty() {
                return Err(format!("{name}: {:?}", findings.wrong));
            }
        }
        let loaded = self.replicas[0].service.experiment(NAMES[OPEN]).await.map_err(text_of)?;
        let id = |index: usize| &loaded.spec.rankers[index].id;
        let rankers: Vec<_> = (0..loaded.spec.rankers.len()).map(id).collect();
        let retired: Vec<_> = loaded.spec.retired.iter().map(|&index| id(index.into())).collect();
        if !rankers.into_iter().eq(&self.rankers) || !retired.into_iter().eq(&self.retired) {
            return Err(format!(
                "it has {:?}, the model {:?} less {:?}",
                loaded.spec, self.rankers, self.retired
            ));
        }
        let active = loaded.fold().map_err(text_of)?.run().roster().active().len();
        if active != self.rankers.len() - self.retired.len() {
            return Err(format!("{active} rankers take part"));
        }
        Ok(())
    }

    /// The log matches the model, and every process's state is the fold of the log.
    async fn check_log(&mut self, url: &str) -> Result<(), String> {
        let keys =
            SigningKeySet::new(&self.store.signing_keys().await.expect("keys")).expect("a key");
        for (experiment, name) in NAMES.iter().enumerate() {
            let record =
                self.store.experiment(name).await.expect("a store").expect("an experiment");
            let log = self.store.read(record.id, 0, 10_000).await.expect("the log");
            let mut seen = BTreeSet::new();
            for (place, entry) in (1..).zip(&log) {
                if entry.position != place || !seen.insert(entry.nonce) {
                    return Err(format!(
                        "{name}: at position {place} of the log there is {entry:?}"
                    ));
                }
            }
            for duel in self.duels.iter().filter(|duel| duel.experiment == experiment) {
                let token = keys.verify(&duel.id).map_err(text_of)?;
                let found = log.iter().find(|entry| entry.nonce == token.nonce);
                seen.remove(&token.nonce);
                let answer = found.map(|entry| match &entry.event {
                    Event::Outcome(outcome) => shown(outcome.answer, token.first_left),
                    Event::Control(other) => panic!("{other:?}"),
                });
                let place = found.map(|entry| entry.position);
                if answer != duel.counted
                    || duel.position.is_some_and(|position| place != Some(position))
                {
                    return Err(format!("{name}: {duel:?} is in the log as {found:?}"));
                }
            }
            let unknown = log.iter().find(|entry| {
                seen.contains(&entry.nonce) && matches!(entry.event, Event::Outcome(_))
            });
            if let Some(unknown) = unknown {
                return Err(format!("{name}: no caller sent {unknown:?}"));
            }
        }
        for replica in 0..REPLICAS {
            self.follow(replica).await?;
        }
        let mut connection = SqliteConnection::connect(url).await.expect("a connection");
        connection.execute("delete from snapshot").await.expect("a statement");
        connection.close().await.expect("a clean close");
        self.check_rankers().await?;
        let fresh = self.process(ManualClock::at(START_MS)).await;
        let standings = |loaded: &LoadedExperiment| {
            let copy = FoldCopy::of(&*loaded.fold().map_err(text_of)?);
            Ok::<_, String>(serde_json::to_value(standings_of(loaded, &copy)).expect("JSON"))
        };
        for loaded in fresh.service.loaded() {
            let folded = standings(&loaded)?;
            for replica in &self.replicas {
                let loaded = replica.service.experiment(&loaded.name).await.map_err(text_of)?;
                loaded.catch_up(&*self.store).await.map_err(text_of)?;
                let standings = standings(&loaded)?;
                if standings != folded && standings["position"] == folded["position"] {
                    return Err(format!(
                        "a process reports {standings}, a fold from the start {folded}"
                    ));
                }
            }
        }
        Ok(())
    }
}

async fn receive(
    service: &Service,
    name: &str,
    duels: &[Duel],
    meant: &[(usize, Outcome)],
) -> Result<Vec<Receipt>, ServiceError> {
    let feedback: Vec<_> = meant
        .iter()
        .map(|(duel, outcome)| Feedback {
            duel_id: duels[*duel].id.as_str().into(),
            content: Some(FeedbackContent::Outcome((*outcome).into())),
            unit: None,
            segment: None,
            metrics: None,
        })
        .collect();
    feedback::receive(service, name, feedback).await
}

fn shown(answer: Answer, first_left: bool) -> Outcome {
    match (answer, first_left) {
        (Answer::First, true) | (Answer::Second, false) => Outcome::Left,
        (Answer::First, false) | (Answer::Second, true) => Outcome::Right,
        (Answer::Tie, _) => Outcome::Tie,
        (Answer::None, _) => Outcome::None,
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}
