//! How experiments are changed: a change is decided on the newest record in the store, and written
//! in one transaction with its log entry and its note in the audit log.

use std::sync::Arc;

use serde_json::Value;

use crate::service::Service;
use crate::service::error::ServiceError;
use rankduel_engine::access::Actor;
use rankduel_engine::consistency::sound_spec;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::{ControlEvent, Event};
use rankduel_store::{AuditNote, Change, Changed, ExperimentRecord, NewEvent, Nonce};

/// The audit log's name of most changes.
pub(super) const CHANGED: &str = "experiment-changed";

/// A change to make.
pub(super) struct Decided {
    /// The change of the record.
    pub change: Change,
    /// The log entry.
    pub event: ControlEvent,
    /// Its name in the audit log.
    pub action: &'static str,
    /// Old value in the audit log.
    pub before: Option<Value>,
    /// New value in the audit log.
    pub after: Option<Value>,
}

impl Decided {
    /// A change of the spec.
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

/// Make the change that `decide` returns, if any, provided that the experiment is at
/// `expected_version` (`None` for any version). If another change comes first and the version
/// does not matter, `decide` is called again.
pub(super) async fn change_experiment(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    by: &Actor,
    decide: impl Fn(
        &LoadedExperiment,
        &ExperimentRecord,
        &ExperimentSpec,
    ) -> Result<Option<Decided>, ServiceError>,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    loop {
        let loaded = service.experiment(name).await?;
        let (record, spec) = newest_record(service, &loaded).await?;
        refuse_archived(&record)?;
        check_version(&record, expected_version)?;
        if spec.roster_changes != loaded.spec.roster_changes || spec.splits != loaded.spec.splits {
            // another process made a change that restarts the verdict: fold it before deciding
            loaded.catch_up(&*service.engine.store).await?;
            if !loaded.is_broken() {
                let why = "its log and its record have different rankers or segments".into();
                return Err(ServiceError::unreadable(name, why));
            }
            continue;
        }
        let Some(Decided { mut change, event, action, before, after }) =
            decide(&loaded, &record, &spec)?
        else {
            return service.experiment(name).await;
        };
        let now = service.now_ms();
        change.audit = Some(AuditNote::of_experiment(by, action, name, now).changed(before, after));
        let nonce = service.engine.fresh_nonce();
        match commit_change(service, nonce, &loaded, &record, change, event, now).await {
            Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
            // a change of the policy or the roster loads the experiment again
            done => {
                done?;
                return service.experiment(name).await;
            }
        }
    }
}

/// The newest record in the store, and its spec. The record in memory may be older if another
/// process changed it.
pub(super) async fn newest_record(
    service: &Service,
    loaded: &LoadedExperiment,
) -> Result<(ExperimentRecord, ExperimentSpec), ServiceError> {
    let record = service.engine.store.experiment(&loaded.name).await?;
    let record = record.ok_or_else(|| ServiceError::not_found(&loaded.name))?;
    let spec = sound_spec(&record).map_err(|why| ServiceError::unreadable(&loaded.name, why))?;
    loaded.set_record(record.clone());
    Ok((record, spec))
}

/// Write a change of a record that was read as `seen`, with its event under this nonce, and
/// fold it.
pub(super) async fn commit_change(
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
    let creates = change.creates.as_ref().map(|new| new.name.clone()).unwrap_or_default();
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
            loaded.set_record(record);
            Err(ServiceError::Stale { expected: seen.version, current })
        }
        Changed::NameTaken => Err(ServiceError::Exists(creates)),
        Changed::Missing => Err(ServiceError::not_found(&loaded.name)),
    }
}

/// Fold the change, so that the next request here finds it: into the experiment that it was
/// decided on, and into the one that may have replaced it in memory. The record comes last:
/// whoever reads there that an experiment is concluded finds in its verdict by whom.
async fn fold_change(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    record: ExperimentRecord,
) -> Result<(), EngineError> {
    let folded = loaded.catch_up(&*service.engine.store).await;
    loaded.set_record(record);
    folded?;
    let current = service.engine.registry.get(&loaded.name).await?;
    if Arc::ptr_eq(&current, loaded) {
        return Ok(());
    }
    current.catch_up(&*service.engine.store).await
}

/// An archived experiment takes no requests that change it.
pub(super) fn refuse_archived(record: &ExperimentRecord) -> Result<(), ServiceError> {
    match record.archived_at {
        Some(_) => Err(ServiceError::Archived(record.name.clone())),
        None => Ok(()),
    }
}

fn check_version(record: &ExperimentRecord, expected: Option<u64>) -> Result<(), ServiceError> {
    match expected {
        Some(expected) if expected != record.version => {
            Err(ServiceError::Stale { expected, current: record.version })
        }
        _ => Ok(()),
    }
}
