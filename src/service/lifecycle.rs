//! The life cycle of an experiment: create, pause, conclude, archive.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::service::Service;
use crate::service::change::{CHANGED, Decided, Decision, Newest, Requested, change};
use crate::service::error::ServiceError;
use crate::service::reports::leader::lead;
use rankduel_engine::access::Actor;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{ExperimentSpec, MAX_SEED, name_error};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::entropy;
use rankduel_store::events::{ControlEvent, Status};
use rankduel_store::{AuditNote, Change, Created, ExperimentRecord, NewExperiment};

/// The experiment of a request to create it.
pub struct CreatedExperiment {
    pub loaded: Arc<LoadedExperiment>,
    /// `false` if an earlier request with the same content has created it.
    pub is_new: bool,
}

/// Create an experiment. A repeat of the request finds the existing one.
pub async fn create(
    service: &Service,
    name: &str,
    spec: &ExperimentSpec,
    by: &Actor,
) -> Result<CreatedExperiment, ServiceError> {
    let errors: Vec<_> = name_error(name).into_iter().chain(spec.errors()).collect();
    ServiceError::unless_valid(errors)?;
    let seed = match spec.seed {
        Some(seed) => seed,
        None => entropy::number().map_err(EngineError::from)? & MAX_SEED,
    };
    let (text, now) = (spec.to_text(), service.now_ms());
    let audit = AuditNote::of_experiment(by, "experiment-created", name, now)
        .changed(None, serde_json::from_str(&text).ok());
    let new = NewExperiment {
        id: entropy::experiment_id().map_err(EngineError::from)?,
        name: name.into(),
        spec: text,
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
    };
    Ok(CreatedExperiment { loaded: service.engine.registry.get(name).await?, is_new })
}

/// If a conclusion without a winner is requested: the leader that every report names.
pub(super) async fn leader_of(
    service: &Service,
    name: &str,
    requested: &Requested,
) -> Result<Option<String>, ServiceError> {
    let Requested::Status { status: Status::Concluded, winner: None } = requested else {
        return Ok(None);
    };
    let loaded = service.experiment(name).await?;
    let leader = lead(&service.reports, &loaded).await?.leader;
    Ok(loaded.spec.rankers.get(leader).map(|ranker| ranker.id.clone()))
}

/// Decide a change of the status, and with `concluded` of the winner.
pub(super) fn status(on: &Newest<'_>, status: Status, winner: Option<&str>) -> Decision {
    let &Newest { loaded, record, .. } = on;
    let leader = on.leader.filter(|_| record.status != Status::Concluded);
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
}

/// Archive a concluded experiment. Idempotent.
pub async fn archive(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    by: &Actor,
) -> Result<(), ServiceError> {
    match change(service, name, expected_version, &Requested::Archive, by).await {
        Ok(_) | Err(ServiceError::Archived(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Decide to archive the experiment.
pub(super) fn archived(on: &Newest<'_>) -> Decision {
    let &Newest { loaded, record, .. } = on;
    if record.status != Status::Concluded {
        return Err(ServiceError::NotConcluded(record.name.clone()));
    }
    let (status, winner) = (record.status, record.winner);
    Ok(Some(Decided {
        change: Change { archived_at: Some(on.service.now_ms()), ..Change::default() },
        event: ControlEvent::Status { status, winner, archived: true, reason: None },
        action: "experiment-archived",
        before: Some(audited_status(loaded, record)),
        after: None,
    }))
}

/// The status of a record as the audit log keeps it.
pub(super) fn audited_status(loaded: &LoadedExperiment, record: &ExperimentRecord) -> Value {
    let winner = record.winner.and_then(|winner| loaded.spec.rankers.get(usize::from(winner)));
    json!({"status": record.status, "winner": winner.map(|ranker| &ranker.id)})
}

/// The winner of an experiment after its status was set to `status` with the requested `winner`.
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
