//! How experiments are changed: a change is decided on the newest record in the store, and written
//! in one transaction with its log entry and its note in the audit log.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::service::Service;
use crate::service::answers;
use crate::service::error::ServiceError;
use crate::service::reports::leader::lead;
use crate::service::units::{UnitHasher, unit_error};
use rankduel_engine::access::Actor;
use rankduel_engine::consistency::sound_spec;
use rankduel_engine::experiment_spec::{
    ExperimentSpec, FieldError, MAX_CONTROLS, MAX_WINDOWS, OrNever, Patch, Refused,
};
use rankduel_engine::lifecycle::Lifecycle;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::{ControlEvent, Event, Status, UnitHash};
use rankduel_store::{AuditNote, Change, Changed, ExperimentRecord, NewEvent, Nonce};

/// The newest state of an experiment, on which a change is decided.
struct Newest<'a> {
    loaded: &'a LoadedExperiment,
    record: &'a ExperimentRecord,
    spec: &'a ExperimentSpec,
    now: i64,
}

/// An experiment after a change.
struct Decided {
    spec: ExperimentSpec,
    lifecycle: Lifecycle,
}

impl From<Refused> for ServiceError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(errors) => Self::Invalid(errors),
            Refused::FixedRankers(why) => Self::FixedRankers(why),
            Refused::Fixed(why) => Self::FixedSetting(why),
        }
    }
}

impl Newest<'_> {
    /// The experiment after a change; `None` if it already is as requested.
    fn decide(&self, patch: &Patch) -> Result<Option<Decided>, ServiceError> {
        let &Self { loaded, record, spec, now } = self;
        if patch.archived && record.status != Status::Concluded {
            return Err(ServiceError::NotConcluded(record.name.clone()));
        }
        let before = Lifecycle::of(record);
        let changed = spec.patched(patch)?;
        let lifecycle = before.patched(patch, (spec, &changed), now)?;
        if changed == *spec && lifecycle == before {
            return Ok(None);
        }
        if changed.exclusions.len() > spec.exclusions.len() && record.pruned_to > 0 {
            return Err(ServiceError::LogPruned(format!(
                "the log of experiment `{}` was pruned up to position {}, and it would have to be \
                 folded from its beginning, without the answers of these units",
                record.name, record.pruned_to
            )));
        }
        let fold = loaded.fold()?;
        let mut errors = Vec::new();
        if changed.control != spec.control && fold.state().controls >= MAX_CONTROLS {
            let detail = format!(
                "the control has changed {MAX_CONTROLS} times, which is the limit; create a new \
                 experiment"
            );
            errors.push(FieldError::new("/control", detail));
        }
        let other_window = changed.answer_window_seconds != spec.answer_window_seconds;
        if other_window && fold.run().cohorts().windows() >= MAX_WINDOWS {
            let detail =
                format!("the experiment has had {MAX_WINDOWS} answer windows, which is the limit");
            errors.push(FieldError::new("/answer_window_seconds", detail));
        }
        ServiceError::unless_valid(errors)?;
        Ok(Some(Decided { spec: changed, lifecycle }))
    }

    /// The change to write, with its note in the audit log.
    fn change(&self, decided: &Decided, patch: &Patch, by: &Actor) -> Change {
        let Decided { spec, lifecycle } = decided;
        let before = (self.spec, Lifecycle::of(self.record));
        let (old, new) = difference(patch, before, (spec, *lifecycle));
        let what = match (patch.archived, patch.status, &patch.reason) {
            (true, ..) => "experiment-archived",
            (_, Some(Status::Concluded), Some(_)) => "experiment-concluded",
            (_, Some(Status::Paused), Some(_)) => "experiment-paused",
            _ => "experiment-changed",
        };
        let note = AuditNote::of_experiment(by, what, &self.record.name, self.now);
        Change {
            status: Some(lifecycle.status),
            winner: Some(lifecycle.winner),
            archived_at: lifecycle.archived_at,
            spec: Some(spec.to_text()),
            audit: Some(note.changed(Some(old), Some(new))),
        }
    }
}

/// The members that the change is about, before and after it. Of a list that grows, only the
/// addition is shown.
fn difference(
    patch: &Patch,
    before: (&ExperimentSpec, Lifecycle),
    after: (&ExperimentSpec, Lifecycle),
) -> (Value, Value) {
    let (before, after) = (described(before), described(after));
    let (mut old, mut new) = (Map::new(), Map::new());
    if let Value::Object(patch) = patch.to_json() {
        for (name, value) in patch {
            match (name.as_str(), after.get(&name)) {
                ("reason", _) => drop(new.insert(name, value)),
                (_, Some(is)) => {
                    old.insert(name.clone(), before.get(&name).cloned().unwrap_or_default());
                    new.insert(name, is.clone());
                }
                (_, None) => {
                    old.insert(name.clone(), Value::Null);
                    new.insert(name, value);
                }
            }
        }
    }
    (old.into(), new.into())
}

/// The members of an experiment by the names that a patch has for them.
fn described((spec, lifecycle): (&ExperimentSpec, Lifecycle)) -> Map<String, Value> {
    let winner = lifecycle.winner.and_then(|winner| spec.rankers.get(usize::from(winner)));
    let members = json!({
        "status": lifecycle.status,
        "winner": winner.map(|winner| &winner.id),
        "archived": lifecycle.archived_at.is_some(),
        "interleaving": spec.pages.interleaving,
        "control": spec.control,
        "description": spec.description,
        "owner": spec.owner,
        "conclude_at": OrNever(spec.conclude_at),
        "answer_window_seconds": spec.answer_window_seconds,
        "coverage": spec.coverage,
    });
    members.as_object().cloned().unwrap_or_default()
}

/// Make a change, provided that the experiment is at `expected_version` (`None` for any version).
/// If another change comes first and the version does not matter, it is decided again. Writes
/// nothing if the experiment already is as requested.
pub async fn change(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    requested: &Patch,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    let completed = completed(&*service.experiment(name).await?, requested.clone())?;
    loop {
        let loaded = service.experiment(name).await?;
        let (record, spec) = newest_record(service, &loaded).await?;
        refuse_archived(&record)?;
        if let Some(expected) = expected_version.filter(|expected| *expected != record.version) {
            return Err(ServiceError::Stale { expected, current: record.version });
        }
        if loaded.is_broken() {
            // another process has changed the spec
            continue;
        }
        let patch = with_winner(service, &loaded, &record, completed.clone()).await?;
        let on = Newest { loaded: &loaded, record: &record, spec: &spec, now: service.now_ms() };
        let Some(decided) = on.decide(&patch)? else {
            return service.experiment(name).await;
        };
        let nonce = service.engine.fresh_nonce();
        match commit(service, nonce, &on, &decided, &patch, by).await {
            Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
            // a change of the spec loads the experiment again
            done => {
                done?;
                let changed = service.experiment(name).await?;
                answers::keep_after_change(service, &changed).await;
                changed.wake();
                return Ok(changed);
            }
        }
    }
}

/// Check a change without making it. Another one may still come first.
pub(crate) fn check(
    service: &Service,
    loaded: &LoadedExperiment,
    requested: &Patch,
) -> Result<(), ServiceError> {
    let mut patch = completed(loaded, requested.clone())?;
    let record = &loaded.record();
    if needs_winner(record, &patch) {
        // instead of the leader, which is active too
        let active = loaded.fold()?.run().roster().active()[0];
        patch.winner = Some(loaded.spec.rankers[active].id.clone());
    }
    let on = Newest { loaded, record, spec: &loaded.spec, now: service.now_ms() };
    on.decide(&patch).map(drop)
}

/// The patch with the hashes of the units that it names, and with all parameters of its method: the
/// log is the same whatever a later version takes as default.
fn completed(loaded: &LoadedExperiment, mut patch: Patch) -> Result<Patch, ServiceError> {
    if let Some(method) = &mut patch.interleaving
        && let Ok(whole) = interleaving::Spec::from_json(method.clone())
        && let Ok(Value::Object(whole)) = serde_json::to_value(whole)
    {
        *method = whole;
    }
    let Some(exclusion) = &mut patch.exclude else { return Ok(patch) };
    for (index, unit) in exclusion.units.iter().enumerate() {
        let empty = unit.is_empty().then(|| "an empty id is no unit".to_owned());
        if let Some(detail) = empty.or_else(|| unit_error(unit)) {
            return Err(ServiceError::field(format!("/exclude/units/{index}"), detail));
        }
    }
    let hasher = UnitHasher::of(loaded);
    let named = std::mem::take(&mut exclusion.units);
    exclusion.hashes.extend(named.iter().map(|unit| UnitHash(hasher.hash(unit))));
    let known: Vec<_> = loaded.spec.excluded_units().collect();
    if !exclusion.hashes.is_empty() && exclusion.hashes.iter().all(|unit| known.contains(unit)) {
        patch.exclude = None;
    }
    Ok(patch)
}

/// Whether the change concludes an experiment and names no winner.
fn needs_winner(record: &ExperimentRecord, patch: &Patch) -> bool {
    let concludes = record.status != Status::Concluded && patch.status == Some(Status::Concluded);
    concludes && patch.winner.is_none()
}

/// The patch with the winner of a conclusion that names none: the leader that every report names.
async fn with_winner(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    record: &ExperimentRecord,
    patch: Patch,
) -> Result<Patch, ServiceError> {
    if !needs_winner(record, &patch) {
        return Ok(patch);
    }
    let leader = lead(&service.reports, loaded).await?.leader;
    Ok(Patch { winner: Some(loaded.spec.rankers[leader].id.clone()), ..patch })
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

/// Write a change with its event under this nonce, and fold it.
async fn commit(
    service: &Service,
    nonce: Nonce,
    on: &Newest<'_>,
    decided: &Decided,
    patch: &Patch,
    by: &Actor,
) -> Result<(), ServiceError> {
    let (name, seen, now) = (&on.record.name, on.record.version, on.now);
    let change = on.change(decided, patch, by);
    let event = ControlEvent::Changed { patch: patch.to_json(), by: by.who().to_owned() };
    let event = NewEvent::new(nonce, Event::Control(event));
    let store = &service.engine.store;
    let changed = store.change_experiment(on.record.id, seen, &change, event, now).await?;
    let (record, done) = match changed {
        Changed::Done(record) => (record, Ok(())),
        Changed::Stale(record) => {
            let current = record.version;
            (record, Err(ServiceError::Stale { expected: seen, current }))
        }
        Changed::Missing => return Err(ServiceError::not_found(name)),
    };
    // fold the change into the experiment in memory, which may have been loaded since
    if let Some(loaded) = service.engine.registry.in_memory(name)
        && let Err(error) = loaded.catch_up_with(&**store, record).await
    {
        // the change is durable and therefore acknowledged; replication folds it later
        tracing::error!(%error, experiment = name, "a change could not be folded yet");
    }
    done
}

/// Change a running experiment without a request, unless the entry with this nonce is in its log or
/// the experiment has changed. Returns whether this call changed it. If another change comes first,
/// the next round of maintenance tries again. A person who sets the experiment running again
/// afterwards wants it to run.
pub(super) async fn change_automatically(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    nonce: Nonce,
    patch: &Patch,
) -> Result<bool, ServiceError> {
    let (record, spec) = newest_record(service, loaded).await?;
    let found = service.engine.store.find(loaded.id, &[nonce]).await?;
    let done_before = found.iter().any(Option::is_some);
    // the reason holds only for the spec and the answers that were counted here
    let is_other = record.status != Status::Running || record.archived_at.is_some();
    if done_before || is_other || spec != loaded.spec {
        return Ok(false);
    }
    let on = Newest { loaded, record: &record, spec: &spec, now: service.now_ms() };
    let Some(decided) = on.decide(patch)? else { return Ok(false) };
    match commit(service, nonce, &on, &decided, patch, &Actor::service()).await {
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
