//! How an experiment is changed: judged by the record as the store has it, and written in one transaction with its entry of
//! the log and its note in the audit log.

use std::sync::Arc;

use serde_json::Value;

use super::error::ServiceError;
use super::live::Live;
use super::service::Service;
use super::spec::ExperimentSpec;
use crate::access::Actor;
use crate::store::{AuditNote, Change, Changed, Event, ExperimentRecord, NewEvent, Nonce, OtherEvent};

/// What is to be changed.
pub(super) struct Decided {
    /// In the record.
    pub change: Change,
    /// In the log.
    pub event: OtherEvent,
    /// What the audit log calls it.
    pub action: &'static str,
    /// As the audit log has it, before and after.
    pub states: (Option<Value>, Option<Value>),
}

impl Service {
    /// Make the change that `decide` wants of an experiment that is still at `expected_version` (`None`: whatever it is at),
    /// if any. It is asked again when somebody else was faster and the version does not matter.
    pub(super) async fn change_experiment(
        &self,
        name: &str,
        expected_version: Option<u64>,
        by: &Actor,
        decide: impl Fn(&Live, &ExperimentRecord, &ExperimentSpec) -> Result<Option<Decided>, ServiceError>,
    ) -> Result<Arc<Live>, ServiceError> {
        loop {
            let live = self.experiment(name).await?;
            let (record, spec) = self.newest_record(&live).await?;
            refuse_archived(&record)?;
            check_version(&record, expected_version)?;
            if spec.comings != live.spec.comings {
                // another server has let a ranker in or go: what is folded here is to know of it before it is asked
                live.catch_up(&*self.store).await?;
                if !live.is_broken() {
                    let why = "its log does not say who of its rankers came and went".into();
                    return Err(ServiceError::Unreadable { name: name.into(), why });
                }
                continue;
            }
            let Some(Decided { mut change, event, action, states: (before, after) }) =
                decide(&live, &record, &spec)?
            else {
                return self.experiment(name).await;
            };
            let now = self.clock.now_ms();
            change.audit = Some(AuditNote::of_experiment(by, action, name, now).changed(before, after));
            match self.commit_change(self.fresh_nonce(), &live, &record, change, event, now).await {
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                // what was in memory may be of the policy or the rankers before
                done => {
                    done?;
                    return self.experiment(name).await;
                }
            }
        }
    }

    /// The record as the store has it, and its spec: a change is judged by what is, and not by what this process remembers from
    /// before another one changed it.
    pub(super) async fn newest_record(
        &self,
        live: &Live,
    ) -> Result<(ExperimentRecord, ExperimentSpec), ServiceError> {
        let record = self.store.experiment(&live.name).await?;
        let record = record.ok_or_else(|| ServiceError::NotFound(live.name.clone()))?;
        let spec = ExperimentSpec::read(&record.spec)
            .map_err(|why| ServiceError::Unreadable { name: live.name.clone(), why })?;
        live.set_record(record.clone());
        Ok((record, spec))
    }

    /// Write a change of the record as it was `seen`, with the event under this nonce, and fold it.
    pub(super) async fn commit_change(
        &self,
        nonce: Nonce,
        live: &Arc<Live>,
        seen: &ExperimentRecord,
        change: Change,
        event: OtherEvent,
        now: i64,
    ) -> Result<(), ServiceError> {
        let event = NewEvent { nonce, event: Event::Other(event) };
        match self.store.change_experiment(live.id, seen.version, &change, event, now).await? {
            Changed::Done(record) => {
                live.set_record(record);
                if let Err(error) = self.fold_change(live).await {
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

    /// Fold what was appended, so that the next request here finds it: into what the change was made on, and into what has
    /// been loaded in its place meanwhile.
    async fn fold_change(&self, live: &Arc<Live>) -> Result<(), ServiceError> {
        live.catch_up(&*self.store).await?;
        let current = self.registry.get(&live.name).await?;
        if Arc::ptr_eq(&current, live) {
            return Ok(());
        }
        current.catch_up(&*self.store).await
    }
}

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
