//! The first and the last change of an experiment: to create and to archive it.

use std::sync::Arc;

use crate::service::Service;
use crate::service::answers;
use crate::service::change::change;
use crate::service::error::ServiceError;
use rankduel_engine::access::Actor;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{ExperimentSpec, MAX_SEED, Patch, name_error};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::entropy;
use rankduel_store::events::{ControlEvent, Event};
use rankduel_store::{AuditNote, Created, ExperimentRecord, NewExperiment};

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
    let drawn = ExperimentSpec { seed: Some(seed), ..spec.clone() };
    let (text, now) = (drawn.to_text(), service.now_ms());
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
            if !repeats(service, &record, spec).await? {
                return Err(ServiceError::Exists(name.into()));
            }
            false
        }
    };
    let loaded = service.engine.registry.get(name).await?;
    answers::keep_after_change(service, &loaded).await;
    Ok(CreatedExperiment { loaded, is_new })
}

/// Whether a request repeats the creation of an experiment: its first entry, or of a pruned log its
/// present spec.
async fn repeats(
    service: &Service,
    record: &ExperimentRecord,
    spec: &ExperimentSpec,
) -> Result<bool, ServiceError> {
    let entries = service.engine.store.read(record.id, 0, 1).await?;
    let created = match entries.first().map(|entry| (entry.position, &entry.event)) {
        Some((1, Event::Control(ControlEvent::Created { spec }))) => {
            ExperimentSpec::read_json(spec)
        }
        _ => ExperimentSpec::read(&record.spec),
    };
    Ok(created.is_ok_and(|created| created.is_repeated_by(spec)))
}

/// Archive a concluded experiment. Idempotent.
pub async fn archive(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    by: &Actor,
) -> Result<(), ServiceError> {
    let archive = Patch { archived: true, ..Patch::default() };
    match change(service, name, expected_version, &archive, by).await {
        Ok(_) | Err(ServiceError::Archived(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
