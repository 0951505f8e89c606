//! An experiment's life: created, listed, paused, concluded, archived.

use std::sync::Arc;

use serde_json::{Value, json};

use super::error::ServiceError;
use super::live::Live;
use super::page_rules::{CurrentMethod, interleaving_text};
use super::service::Service;
use super::spec::{ExperimentSpec, FieldError, MAX_POLICIES, name_error};
use crate::access::Actor;
use crate::entropy;
use crate::interleave;
use crate::policy::PolicySpec;
use crate::store::{
    AuditNote, Change, Changed, Created, Event, ExperimentRecord, NewEvent, NewExperiment, Nonce, OtherEvent,
    Status,
};

/// Nonce of the one conclusion that the service draws by itself; no process draws it.
const CONCLUSION: Nonce = (u64::MAX as Nonce - 1) << 64;
/// Versions of the method that one experiment can have: each is counted apart.
const MAX_METHOD_VERSIONS: u32 = 100;

impl Service {
    /// Create an experiment, or find that the same request created it before. The flag says whether it is new.
    pub async fn create(
        &self,
        name: &str,
        spec: &ExperimentSpec,
        by: &Actor,
    ) -> Result<(Arc<Live>, bool), ServiceError> {
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
        let now = self.clock.now_ms();
        let audit = AuditNote::of_experiment(by, "experiment-created", name, now)
            .changed(None, serde_json::from_str(&canonical).ok());
        let new =
            NewExperiment { name: name.into(), spec: canonical, seed, created_at: now, audit: Some(audit) };
        let is_new = match self.store.create_experiment(&new).await? {
            Created::New(_) => true,
            Created::Taken(record) if record.archived_at.is_some() => {
                return Err(ServiceError::Archived(name.into()));
            }
            Created::Taken(record) => {
                // compared as values: an older program may have written the text differently
                let existing: Option<ExperimentSpec> = serde_json::from_str(&record.spec).ok();
                if existing.as_ref().map(ExperimentSpec::as_created).as_ref() != Some(spec) {
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
        by: &Actor,
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
            let now = self.clock.now_ms();
            let after = ExperimentRecord { status, winner, ..record.clone() };
            let audit = AuditNote::of_experiment(by, "experiment-changed", name, now)
                .changed(Some(standing(&live, &record)), Some(standing(&live, &after)));
            let change = Change {
                status: Some(status),
                winner: Some(winner),
                audit: Some(audit),
                ..Change::default()
            };
            let event = OtherEvent::Status { status, winner, archived: false, reason: None };
            match self.change(&live, &record, change, event, now).await {
                // somebody was faster; who does not care what it was goes on from what it is
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                done => return done.map(|()| live),
            }
        }
    }

    /// Interleave in another way from here on, if the experiment is still at `expected_version` (`None`: whatever it is
    /// at). The method that it has already changes nothing.
    pub async fn set_interleaving(
        &self,
        name: &str,
        expected_version: Option<u64>,
        method: interleave::Spec,
        by: &Actor,
    ) -> Result<Arc<Live>, ServiceError> {
        method.validate().map_err(|error| {
            let pointer = format!("/interleaving/{}", error.parameter);
            ServiceError::Invalid(vec![FieldError::new(pointer, error.detail)])
        })?;
        let live = self.experiment(name).await?;
        loop {
            let record = self.newest_record(&live).await?;
            refuse_archived(&record)?;
            check_version(&record, expected_version)?;
            let current = CurrentMethod::of(&record, &live.spec.pages)
                .map_err(|why| ServiceError::Unreadable { name: name.into(), why })?;
            if current.method == method {
                return Ok(live);
            }
            if current.version >= MAX_METHOD_VERSIONS {
                let detail = format!(
                    "the method was changed {MAX_METHOD_VERSIONS} times, which is all that one experiment takes; \
                     create a new one"
                );
                return Err(ServiceError::Invalid(vec![FieldError::new("/interleaving", detail)]));
            }
            let version = current.version + 1;
            let text = interleaving_text(version, &method);
            let now = self.clock.now_ms();
            let audit = AuditNote::of_experiment(by, "experiment-changed", name, now).changed(
                Some(json!({"interleaving": current.method})),
                Some(json!({"interleaving": method})),
            );
            let change = Change { interleaving: Some(text), audit: Some(audit), ..Change::default() };
            let event = OtherEvent::Interleaving { version, method };
            match self.change(&live, &record, change, event, now).await {
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                done => return done.map(|()| live),
            }
        }
    }

    /// Let another policy choose from here on, if the experiment is still at `expected_version` (`None`: whatever it is at).
    /// The log stays, and is folded under the new policy from its beginning. The policy that it has already changes nothing.
    pub async fn set_policy(
        &self,
        name: &str,
        expected_version: Option<u64>,
        policy: PolicySpec,
        by: &Actor,
    ) -> Result<Arc<Live>, ServiceError> {
        let live = self.experiment(name).await?;
        loop {
            let record = self.newest_record(&live).await?;
            refuse_archived(&record)?;
            check_version(&record, expected_version)?;
            let spec = ExperimentSpec::read(&record.spec)
                .map_err(|why| ServiceError::Unreadable { name: name.into(), why })?;
            if spec.policy == policy {
                return self.experiment(name).await;
            }
            if record.pruned_to > 0 {
                return Err(ServiceError::CannotReplay(format!(
                    "the log of experiment `{name}` was pruned up to position {}, and another policy would have to learn from \
                     its beginning",
                    record.pruned_to
                )));
            }
            if !spec.comings.is_none()
                && let Some(why) = policy.description().fixed_rankers
            {
                return Err(ServiceError::FixedRankers(format!(
                    "rankers have come or gone in experiment `{name}`, and policy `{}` cannot learn from such a log: {why}",
                    policy.kind()
                )));
            }
            let changed = spec.under(policy.clone());
            let mut errors = changed.errors();
            if changed.former_policies.len() >= MAX_POLICIES {
                let detail =
                    format!("the experiment has had {MAX_POLICIES} policies, which is all that it takes");
                errors.push(FieldError::new("/policy", detail));
            }
            if !errors.is_empty() {
                return Err(ServiceError::Invalid(errors));
            }
            let text = serde_json::to_string(&changed)
                .map_err(|error| ServiceError::Internal(format!("the spec does not serialise: {error}")))?;
            let now = self.clock.now_ms();
            let audit = AuditNote::of_experiment(by, "experiment-changed", name, now)
                .changed(Some(json!({"policy": spec.policy})), Some(json!({"policy": policy})));
            let change = Change { spec: Some(text), audit: Some(audit), ..Change::default() };
            let event = OtherEvent::Policy { policy: policy.clone() };
            match self.change(&live, &record, change, event, now).await {
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                // what was in memory is of the policy before; this folds the log anew
                done => {
                    done?;
                    return self.experiment(name).await;
                }
            }
        }
    }

    /// Archive a concluded experiment: it is listed no more and nothing is added to it. Its log stays. Done twice is
    /// done.
    pub async fn archive(
        &self,
        name: &str,
        expected_version: Option<u64>,
        by: &Actor,
    ) -> Result<(), ServiceError> {
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
            let now = self.clock.now_ms();
            let audit = AuditNote::of_experiment(by, "experiment-archived", name, now)
                .changed(Some(standing(&live, &record)), None);
            let change = Change { archived_at: Some(now), audit: Some(audit), ..Change::default() };
            let event = OtherEvent::Status {
                status: record.status,
                winner: record.winner,
                archived: true,
                reason: None,
            };
            match self.change(&live, &record, change, event, now).await {
                Err(ServiceError::Stale { .. }) if expected_version.is_none() => {}
                done => return done,
            }
        }
    }

    /// The record as the store has it: a change is judged by what is, and not by what this process remembers from
    /// before another one changed it.
    pub(super) async fn newest_record(&self, live: &Live) -> Result<ExperimentRecord, ServiceError> {
        let record = self.store.experiment(&live.name).await?;
        let record = record.ok_or_else(|| ServiceError::NotFound(live.name.clone()))?;
        live.set_record(record.clone());
        Ok(record)
    }

    /// Conclude a running experiment on `winner` because of `reason`, unless the service did so before, in whichever process:
    /// who sets it running again wants it to run. Whether it was done.
    pub(super) async fn conclude_by_itself(
        &self,
        live: &Arc<Live>,
        winner: usize,
        reason: String,
    ) -> Result<bool, ServiceError> {
        let record = self.newest_record(live).await?;
        let done_before = self.store.find(live.id, &[CONCLUSION]).await?.iter().any(Option::is_some);
        if record.status != Status::Running || record.archived_at.is_some() || done_before {
            return Ok(false);
        }
        let now = self.clock.now_ms();
        let (status, winner) = (Status::Concluded, Some(winner as u16));
        let after = ExperimentRecord { status, winner, ..record.clone() };
        let mut stands = standing(live, &after);
        stands["reason"] = json!(reason);
        let audit = AuditNote::of_experiment(&Actor::service(), "experiment-concluded", &live.name, now)
            .changed(Some(standing(live, &record)), Some(stands));
        let change =
            Change { status: Some(status), winner: Some(winner), audit: Some(audit), ..Change::default() };
        let event = OtherEvent::Status { status, winner, archived: false, reason: Some(reason) };
        match self.change_as(CONCLUSION, live, &record, change, event, now).await {
            // somebody was faster; the next look decides on what is then
            Err(ServiceError::Stale { .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }

    pub(super) async fn change(
        &self,
        live: &Arc<Live>,
        seen: &ExperimentRecord,
        change: Change,
        event: OtherEvent,
        now: i64,
    ) -> Result<(), ServiceError> {
        self.change_as(self.fresh_nonce(), live, seen, change, event, now).await
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

    async fn change_as(
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
}

/// What the audit log says of a record.
fn standing(live: &Live, record: &ExperimentRecord) -> Value {
    let winner = record.winner.and_then(|winner| live.spec.rankers.get(usize::from(winner)));
    json!({"status": record.status, "winner": winner.map(|ranker| &ranker.id)})
}

pub(super) fn refuse_archived(record: &ExperimentRecord) -> Result<(), ServiceError> {
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
            Some(index) if live.spec.is_retired(index) => {
                return refuse(format!("ranker `{id}` of experiment `{}` is retired", live.name));
            }
            Some(index) => Some(index as u16),
            None => return refuse(format!("experiment `{}` has no ranker `{id}`", live.name)),
        },
        (Status::Concluded, None) if record.status == Status::Concluded => record.winner,
        (Status::Concluded, None) => Some(live.fold()?.policy().champion() as u16),
        (_, Some(_)) => return refuse("`winner` goes with the status `concluded` only".into()),
        (_, None) => None,
    })
}

pub(super) fn check_version(record: &ExperimentRecord, expected: Option<u64>) -> Result<(), ServiceError> {
    match expected {
        Some(expected) if expected != record.version => {
            Err(ServiceError::Stale { expected, current: record.version })
        }
        _ => Ok(()),
    }
}
