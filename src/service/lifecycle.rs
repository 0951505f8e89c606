//! The life cycle of an experiment: create, pause, conclude, archive.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::service::Service;
use crate::service::change::{CHANGED, Decided, change_experiment};
use crate::service::error::ServiceError;
use crate::service::reports::leader::lead;
use crate::service::splits::refuse_serving;
use rankduel_engine::access::Actor;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{ExperimentSpec, MAX_SEED, name_error};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::entropy;
use rankduel_store::events::{ControlEvent, Status};
use rankduel_store::{AuditNote, Change, Created, ExperimentRecord, NewExperiment};

/// Create an experiment. Returns whether it is new: a repeat of the request finds the existing
/// experiment.
pub async fn create(
    service: &Service,
    name: &str,
    spec: &ExperimentSpec,
    by: &Actor,
) -> Result<(Arc<LoadedExperiment>, bool), ServiceError> {
    let errors: Vec<_> = name_error(name).into_iter().chain(spec.errors()).collect();
    if !errors.is_empty() {
        return Err(ServiceError::Invalid(errors));
    }
    let seed = match spec.seed {
        Some(seed) => seed,
        None => entropy::number().map_err(EngineError::from)? & MAX_SEED,
    };
    let canonical = spec.to_text();
    let now = service.now_ms();
    let audit = AuditNote::of_experiment(by, "experiment-created", name, now)
        .changed(None, serde_json::from_str(&canonical).ok());
    let new = NewExperiment {
        name: name.into(),
        spec: canonical,
        seed,
        created_at: now,
        audit: Some(audit),
    };
    let is_new = match service.engine.store.create_experiment(&new).await? {
        Created::New(_) => true,
        Created::Taken(record) if record.archived_at.is_some() => {
            return Err(ServiceError::Archived(name.into()));
        }
        Created::Taken(record) => {
            // compared as values: another version of the program may have written other text
            let existing: Option<ExperimentSpec> = serde_json::from_str(&record.spec).ok();
            if !existing.is_some_and(|existing| existing.is_repeated_by(spec, record.seed)) {
                return Err(ServiceError::Exists(name.into()));
            }
            false
        }
        Created::Collision => return Err(ServiceError::NameCollision(name.into())),
    };
    Ok((service.engine.registry.get(name).await?, is_new))
}

/// Set the status, if the experiment is at `expected_version` (`None` for any version).
/// Concluding sets the winner: the given one, or the leader that every report names.
pub async fn set_status(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    status: Status,
    winner: Option<&str>,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    let leader = match (status, winner) {
        (Status::Concluded, None) => {
            let loaded = service.experiment(name).await?;
            let leader = lead(&service.reports, &loaded).await?.leader;
            loaded.spec.rankers.get(leader).map(|ranker| ranker.id.clone())
        }
        _ => None,
    };
    change_experiment(service, name, expected_version, by, |loaded, record, _| {
        let is_concluded = record.status == Status::Concluded;
        let leader = leader.as_deref().filter(|_| !is_concluded);
        let winner = new_winner(loaded, record, status, winner.or(leader))?;
        if record.status == status && record.winner == winner {
            return Ok(None);
        }
        let after = ExperimentRecord { status, winner, ..record.clone() };
        Ok(Some(Decided {
            change: Change { status: Some(status), winner: Some(winner), ..Change::default() },
            event: ControlEvent::Status { status, winner, archived: false, reason: None },
            action: CHANGED,
            before: Some(audited_status(loaded, record)),
            after: Some(audited_status(loaded, &after)),
        }))
    })
    .await
}

/// Archive a concluded experiment: it is no longer listed and cannot be changed. Its log stays.
/// Idempotent.
pub async fn archive(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    by: &Actor,
) -> Result<(), ServiceError> {
    let now = service.now_ms();
    refuse_serving(service, &*service.experiment(name).await?).await?;
    let archived = change_experiment(service, name, expected_version, by, |loaded, record, _| {
        if record.status != Status::Concluded {
            return Err(ServiceError::NotConcluded(name.into()));
        }
        let (status, winner) = (record.status, record.winner);
        Ok(Some(Decided {
            change: Change { archived_at: Some(now), ..Change::default() },
            event: ControlEvent::Status { status, winner, archived: true, reason: None },
            action: "experiment-archived",
            before: Some(audited_status(loaded, record)),
            after: None,
        }))
    });
    match archived.await {
        Ok(_) | Err(ServiceError::Archived(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The status of a record as the audit log keeps it.
pub(super) fn audited_status(loaded: &LoadedExperiment, record: &ExperimentRecord) -> Value {
    let winner = record.winner.and_then(|winner| loaded.spec.rankers.get(usize::from(winner)));
    json!({"status": record.status, "winner": winner.map(|ranker| &ranker.id)})
}

/// The winner that an experiment with this record gets along with `status`.
fn new_winner(
    loaded: &LoadedExperiment,
    record: &ExperimentRecord,
    status: Status,
    winner: Option<&str>,
) -> Result<Option<u16>, ServiceError> {
    let refuse = |detail: String| Err(ServiceError::field("/winner", detail));
    Ok(match (status, winner) {
        (Status::Concluded, Some(id)) => match loaded.spec.ranker_index(id) {
            Some(index) if loaded.spec.is_retired(index) => {
                return refuse(format!("ranker `{id}` of experiment `{}` is retired", loaded.name));
            }
            Some(index) => Some(index as u16),
            None => return refuse(format!("experiment `{}` has no ranker `{id}`", loaded.name)),
        },
        (Status::Concluded, None) => record.winner,
        (_, Some(_)) => {
            return refuse("`winner` is allowed only with the status `concluded`".into());
        }
        (_, None) => None,
    })
}
