//! How an experiment is changed: judged by the record as the store has it, and written in one
//! transaction with its entry of the log and its note in the audit log.

use std::sync::Arc;

use serde_json::Value;

use crate::access::Actor;
use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::loaded::LoadedExperiment;
use crate::events::{ControlEvent, Event};
use crate::service::Service;
use crate::store::{AuditNote, Change, Changed, ExperimentRecord, NewEvent, Nonce};

/// What is to be changed.
pub(crate) struct Decided {
    /// In the record.
    pub change: Change,
    /// In the log.
    pub event: ControlEvent,
    /// What the audit log calls it.
    pub action: &'static str,
    /// As the audit log has it, before and after.
    pub states: (Option<Value>, Option<Value>),
}

impl Service {
    /// Make the change that `decide` wants of an experiment that is still at `expected_version`
    /// (`None`: whatever it is at), if any. It is asked again when somebody else was faster and the
    /// version does not matter.
    pub(crate) async fn change_experiment(
        &self,
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
            let loaded = self.experiment(name).await?;
            let (record, spec) = self.newest_record(&loaded).await?;
            refuse_archived(&record)?;
            check_version(&record, expected_version)?;
            if spec.roster_changes != loaded.spec.roster_changes {
                // another server has let a ranker in or go: what is folded here is to know of it
                // before it is asked
                loaded.catch_up(&*self.store).await?;
                if !loaded.is_broken() {
                    let why = "its log does not say who of its rankers came and went".into();
                    return Err(ServiceError::Unreadable { name: name.into(), why });
                }
                continue;
            }
            let Some(Decided { mut change, event, action, states: (before, after) }) =
                decide(&loaded, &record, &spec)?
            else {
                return self.experiment(name).await;
            };
            let now = self.clock.now_ms();
            change.audit =
                Some(AuditNote::of_experiment(by, action, name, now).changed(before, after));
            match self.commit_change(self.fresh_nonce(), &loaded, &record, change, event, now).await
            {
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                // what was in memory may be of the policy or the rankers before
                done => {
                    done?;
                    return self.experiment(name).await;
                }
            }
        }
    }

    /// The record as the store has it, and its spec: a change is judged by what is, and not by what
    /// this process remembers from before another one changed it.
    pub(crate) async fn newest_record(
        &self,
        loaded: &LoadedExperiment,
    ) -> Result<(ExperimentRecord, ExperimentSpec), ServiceError> {
        let record = self.store.experiment(&loaded.name).await?;
        let record = record.ok_or_else(|| ServiceError::NotFound(loaded.name.clone()))?;
        let spec = ExperimentSpec::read(&record.spec)
            .map_err(|why| ServiceError::Unreadable { name: loaded.name.clone(), why })?;
        loaded.set_record(record.clone());
        Ok((record, spec))
    }

    /// Write a change of the record as it was `seen`, with the event under this nonce, and fold it.
    pub(crate) async fn commit_change(
        &self,
        nonce: Nonce,
        loaded: &Arc<LoadedExperiment>,
        seen: &ExperimentRecord,
        change: Change,
        event: ControlEvent,
        now: i64,
    ) -> Result<(), ServiceError> {
        let event = NewEvent::new(nonce, Event::Control(event));
        match self.store.change_experiment(loaded.id, seen.version, &change, event, now).await? {
            Changed::Done(record) => {
                loaded.set_record(record);
                if let Err(error) = self.fold_change(loaded).await {
                    // it is done and durable, so it is acknowledged all the same; the follower
                    // folds it later
                    tracing::error!(%error, experiment = loaded.name, "a change could not be folded yet");
                }
                Ok(())
            }
            Changed::Stale(record) => {
                let current = record.version;
                loaded.set_record(record);
                Err(ServiceError::Stale { expected: seen.version, current })
            }
            Changed::Missing => Err(ServiceError::NotFound(loaded.name.clone())),
        }
    }

    /// Fold what was appended, so that the next request here finds it: into what the change was
    /// made on, and into what has been loaded in its place meanwhile.
    async fn fold_change(&self, loaded: &Arc<LoadedExperiment>) -> Result<(), ServiceError> {
        loaded.catch_up(&*self.store).await?;
        let current = self.registry.get(&loaded.name).await?;
        if Arc::ptr_eq(&current, loaded) {
            return Ok(());
        }
        current.catch_up(&*self.store).await
    }
}

pub(crate) fn refuse_archived(record: &ExperimentRecord) -> Result<(), ServiceError> {
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
