//! How experiments are changed: a change is decided on the newest record in the store, and written
//! in one transaction with its log entry and its note in the audit log.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::service::error::ServiceError;
use crate::service::lifecycle::audited_status;
use crate::service::settings_changes::SettingsChange;
use crate::service::spec_changes::Excluded;
use crate::service::{Service, lifecycle, roster_changes, settings_changes, spec_changes};
use rankduel_engine::access::Actor;
use rankduel_engine::consistency::sound_spec;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{ExperimentSpec, Ranker};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::{ControlEvent, Event, Status};
use rankduel_store::{AuditNote, Change, Changed, ExperimentRecord, NewEvent, Nonce};

/// The audit log's name of most changes.
pub(super) const CHANGED: &str = "experiment-changed";

/// A change to write.
pub(super) struct Decided {
    pub change: Change,
    pub event: ControlEvent,
    /// The change's name in the audit log.
    pub action: &'static str,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl Decided {
    pub fn of_spec(
        changed: &ExperimentSpec,
        event: ControlEvent,
        before: Value,
        after: Value,
    ) -> Self {
        let change = Change { spec: Some(changed.to_text()), ..Change::default() };
        Self { change, event, action: CHANGED, before: Some(before), after: Some(after) }
    }
}

/// A change that somebody requests.
#[derive(Debug, Clone)]
pub enum Requested {
    /// The ranker that people see today. Claims are made against it with the answers to duels
    /// issued from now on.
    Control(String),
    /// Another method of interleaving, from the next log position on.
    Interleaving(interleaving::Spec),
    Enlist(Ranker),
    /// A ranker that is never selected again; answers of its open duels still count.
    Retire {
        id: String,
        /// The service's reason, if it retires the ranker automatically.
        reason: Option<String>,
    },
    /// Units whose answers no longer count: the log is folded anew without them.
    Exclude(Excluded),
    /// Another status. Concluding sets the winner: this one, or the leader that every report names.
    Status {
        status: Status,
        winner: Option<String>,
    },
    /// A concluded experiment is no longer listed and cannot be changed. Its log stays.
    Archive,
    Settings(SettingsChange),
}

/// The newest state of an experiment, on which a change is decided.
pub(super) struct Newest<'a> {
    pub service: &'a Service,
    pub loaded: &'a LoadedExperiment,
    pub record: &'a ExperimentRecord,
    pub spec: &'a ExperimentSpec,
    /// The winner of a conclusion that names none.
    pub leader: Option<&'a str>,
}

/// The change to write for a request; `None` if the experiment already is as requested.
pub(super) type Decision = Result<Option<Decided>, ServiceError>;

impl Requested {
    fn decide(&self, on: &Newest<'_>) -> Decision {
        match self {
            Self::Control(id) => spec_changes::control(on, id),
            Self::Interleaving(method) => spec_changes::interleaving(on, *method),
            Self::Enlist(ranker) => roster_changes::enlist(on, ranker),
            Self::Retire { id, reason } => roster_changes::retire(on, id, reason.as_deref()),
            Self::Exclude(excluded) => spec_changes::exclude(on, excluded),
            Self::Status { status, winner } => lifecycle::status(on, *status, winner.as_deref()),
            Self::Archive => lifecycle::archived(on),
            Self::Settings(settings) => settings_changes::set(on, settings),
        }
    }
}

/// Make a change, provided that the experiment is at `expected_version` (`None` for any version).
/// If another change comes first and the version does not matter, it is decided again. Writes
/// nothing if the experiment already is as requested.
pub async fn change(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    requested: &Requested,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    let leader = lifecycle::leader_of(service, name, requested).await?;
    let leader = leader.as_deref();
    loop {
        let loaded = service.experiment(name).await?;
        let (record, spec) = newest_record(service, &loaded).await?;
        refuse_archived(&record)?;
        if let Some(expected) = expected_version.filter(|expected| *expected != record.version) {
            return Err(ServiceError::Stale { expected, current: record.version });
        }
        if loaded.is_broken() {
            // another process made a change for which the log is folded anew
            continue;
        }
        if spec.roster_changes != loaded.spec.roster_changes {
            let why = "its log and its record have different rankers".into();
            return Err(ServiceError::unreadable(name, why));
        }
        let on = Newest { service, loaded: &loaded, record: &record, spec: &spec, leader };
        let Some(Decided { mut change, event, action, before, after }) = requested.decide(&on)?
        else {
            return service.experiment(name).await;
        };
        let now = service.now_ms();
        change.audit = Some(AuditNote::of_experiment(by, action, name, now).changed(before, after));
        let nonce = service.engine.fresh_nonce();
        match commit_change(service, nonce, &loaded, &record, change, event, now).await {
            Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
            // an exclusion or a change of the roster loads the experiment again
            done => {
                done?;
                return service.experiment(name).await;
            }
        }
    }
}

/// Check a change without making it. Another one may still come first.
pub(crate) fn check(
    service: &Service,
    loaded: &LoadedExperiment,
    requested: &Requested,
) -> Result<(), ServiceError> {
    let record = loaded.record();
    let on = Newest { service, loaded, record: &record, spec: &loaded.spec, leader: None };
    requested.decide(&on).map(drop)
}

/// The newest record in the store, and its spec. The record and the fold in memory may be older if
/// another process changed the experiment; they are brought up to date.
async fn newest_record(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(ExperimentRecord, ExperimentSpec), ServiceError> {
    let record = service.engine.store.experiment(&loaded.name).await?;
    let record = record.ok_or_else(|| ServiceError::not_found(&loaded.name))?;
    let spec = sound_spec(&record).map_err(|why| ServiceError::unreadable(&loaded.name, why))?;
    loaded.catch_up_with(&*service.engine.store, record.clone()).await?;
    Ok((record, spec))
}

/// Write a change of a record that was read as `seen`, with its event under this nonce, and
/// fold it.
async fn commit_change(
    service: &Service,
    nonce: Nonce,
    loaded: &Arc<LoadedExperiment>,
    seen: &ExperimentRecord,
    change: Change,
    event: ControlEvent,
    now: i64,
) -> Result<(), ServiceError> {
    let event = NewEvent::new(nonce, Event::Control(event));
    let store = &service.engine.store;
    match store.change_experiment(loaded.id, seen.version, &change, event, now).await? {
        Changed::Done(record) => {
            if let Err(error) = fold_change(service, loaded, record).await {
                // it is durable and therefore acknowledged; replication folds it later
                tracing::error!(%error, experiment = loaded.name, "a change could not be folded yet");
            }
            Ok(())
        }
        Changed::Stale(record) => {
            let current = record.version;
            loaded.catch_up_with(&**store, record).await?;
            Err(ServiceError::Stale { expected: seen.version, current })
        }
        Changed::Missing => Err(ServiceError::not_found(&loaded.name)),
    }
}

/// Fold the change, so that the next request here finds it: into the experiment that it was
/// decided on, and into the one that may have replaced it in memory.
async fn fold_change(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    record: ExperimentRecord,
) -> Result<(), EngineError> {
    loaded.catch_up_with(&*service.engine.store, record).await?;
    let current = service.engine.registry.get(&loaded.name).await?;
    current.wake();
    if Arc::ptr_eq(&current, loaded) {
        return Ok(());
    }
    current.catch_up(&*service.engine.store).await
}

/// A status that the service sets on a running experiment without a request.
pub(super) struct AutomaticStatus {
    /// It is set at most once under this nonce: a person who sets the experiment running again
    /// wants it to run.
    pub nonce: Nonce,
    pub status: Status,
    pub winner: Option<u16>,
    pub reason: String,
    /// The change's name in the audit log.
    pub action: &'static str,
}

/// Set this status, unless it was set before or the experiment has changed. Returns whether this
/// call set it. If another change comes first, the next round of maintenance tries again.
pub(super) async fn set_automatically(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    AutomaticStatus { nonce, status, winner, reason, action }: AutomaticStatus,
) -> Result<bool, ServiceError> {
    let (record, spec) = newest_record(service, loaded).await?;
    let found = service.engine.store.find(loaded.id, &[nonce]).await?;
    let done_before = found.iter().any(Option::is_some);
    // the reason holds only for the rankers and the answers that were counted here
    let other_fold = spec.roster_changes != loaded.spec.roster_changes
        || spec.exclusions != loaded.spec.exclusions
        || spec.control != loaded.spec.control;
    if record.status != Status::Running || record.archived_at.is_some() || done_before || other_fold
    {
        return Ok(false);
    }
    let now = service.now_ms();
    let mut after = audited_status(loaded, &ExperimentRecord { status, winner, ..record.clone() });
    after["reason"] = json!(reason);
    let audit = AuditNote::of_experiment(&Actor::service(), action, &loaded.name, now)
        .changed(Some(audited_status(loaded, &record)), Some(after));
    let change = Change {
        status: Some(status),
        winner: Some(winner),
        audit: Some(audit),
        ..Change::default()
    };
    let event = ControlEvent::Status { status, winner, archived: false, reason: Some(reason) };
    match commit_change(service, nonce, loaded, &record, change, event, now).await {
        Err(ServiceError::Stale { .. }) => Ok(false),
        done => done.map(|()| true),
    }
}

/// An archived experiment takes no requests that change it.
pub(super) fn refuse_archived(record: &ExperimentRecord) -> Result<(), ServiceError> {
    match record.archived_at {
        Some(_) => Err(ServiceError::Archived(record.name.clone())),
        None => Ok(()),
    }
}
