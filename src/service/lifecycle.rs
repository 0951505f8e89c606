//! An experiment's life: created, listed, paused, concluded, archived.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::access::Actor;
use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::{ExperimentSpec, FieldError, MAX_POLICIES, name_error};
use crate::engine::loaded::LoadedExperiment;
use crate::engine::page_rules::{CurrentMethod, interleaving_text};
use crate::entropy;
use crate::events::{ControlEvent, Status};
use crate::service::Service;
use crate::service::change::Decided;
use crate::store::{AuditNote, Change, Created, ExperimentRecord, NewExperiment, Nonce};
use dueling_bandits::PolicySpec;
use interleaving;

/// Nonce of the one conclusion that the service draws by itself; no process draws it.
const CONCLUSION: Nonce = (u64::MAX as Nonce - 1) << 64;
/// Versions of the method that one experiment can have: each is counted apart.
const MAX_METHOD_VERSIONS: u32 = 100;
/// What the audit log calls most changes.
pub(crate) const CHANGED: &str = "experiment-changed";

impl Service {
    /// Create an experiment, or find that the same request created it before. The flag says whether
    /// it is new.
    pub async fn create(
        &self,
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
            None => entropy::number().map_err(|error| {
                ServiceError::Internal(format!("the system gives no randomness: {error}"))
            })?,
        };
        let canonical = text_of(spec)?;
        let now = self.clock.now_ms();
        let audit = AuditNote::of_experiment(by, "experiment-created", name, now)
            .changed(None, serde_json::from_str(&canonical).ok());
        let new = NewExperiment {
            name: name.into(),
            spec: canonical,
            seed,
            created_at: now,
            audit: Some(audit),
        };
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
    pub async fn list(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, ServiceError> {
        Ok(self.store.experiments(after, limit).await?)
    }

    /// Set an experiment's status if it is still at `expected_version` (`None`: whatever it is at).
    /// Concluding names the winner: the given one or the policy's champion.
    pub async fn set_status(
        &self,
        name: &str,
        expected_version: Option<u64>,
        status: Status,
        winner: Option<&str>,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        self.change_experiment(name, expected_version, by, |loaded, record, _| {
            let winner = winner_to_be(loaded, record, status, winner)?;
            if record.status == status && record.winner == winner {
                return Ok(None);
            }
            let after = ExperimentRecord { status, winner, ..record.clone() };
            Ok(Some(Decided {
                change: Change { status: Some(status), winner: Some(winner), ..Change::default() },
                event: ControlEvent::Status { status, winner, archived: false, reason: None },
                action: CHANGED,
                states: (Some(standing(loaded, record)), Some(standing(loaded, &after))),
            }))
        })
        .await
    }

    /// Interleave in another way from here on, if the experiment is still at `expected_version`
    /// (`None`: whatever it is at). The method that it has already changes nothing.
    pub async fn set_interleaving(
        &self,
        name: &str,
        expected_version: Option<u64>,
        method: interleaving::Spec,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        method.validate().map_err(|error| {
            let pointer = format!("/interleaving/{}", error.parameter);
            ServiceError::Invalid(vec![FieldError::new(pointer, error.detail)])
        })?;
        self.change_experiment(name, expected_version, by, |loaded, record, _| {
            let current = CurrentMethod::of(record, &loaded.spec.pages)
                .map_err(|why| ServiceError::Unreadable { name: name.into(), why })?;
            if current.method == method {
                return Ok(None);
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
            Ok(Some(Decided {
                change: Change { interleaving: Some(text), ..Change::default() },
                event: ControlEvent::Interleaving { version, method },
                action: CHANGED,
                states: (
                    Some(json!({"interleaving": current.method})),
                    Some(json!({"interleaving": method})),
                ),
            }))
        })
        .await
    }

    /// Let another policy choose from here on, if the experiment is still at `expected_version`
    /// (`None`: whatever it is at). The log stays, and is folded under the new policy from its
    /// beginning. The policy that it has already changes nothing.
    pub async fn set_policy(
        &self,
        name: &str,
        expected_version: Option<u64>,
        policy: PolicySpec,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        self.change_experiment(name, expected_version, by, |_, record, spec| {
            if spec.policy == policy {
                return Ok(None);
            }
            if record.pruned_to > 0 {
                return Err(ServiceError::CannotReplay(format!(
                    "the log of experiment `{name}` was pruned up to position {}, and another policy would have to learn from \
                     its beginning",
                    record.pruned_to
                )));
            }
            if !spec.roster_changes.is_none()
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
            Ok(Some(Decided {
                change: Change { spec: Some(text_of(&changed)?), ..Change::default() },
                event: ControlEvent::Policy { policy: policy.clone() },
                action: CHANGED,
                states: (Some(json!({"policy": spec.policy})), Some(json!({"policy": policy}))),
            }))
        })
        .await
    }

    /// Archive a concluded experiment: it is listed no more and nothing is added to it. Its log
    /// stays. Done twice is done.
    pub async fn archive(
        &self,
        name: &str,
        expected_version: Option<u64>,
        by: &Actor,
    ) -> Result<(), ServiceError> {
        let now = self.clock.now_ms();
        let archived = self.change_experiment(name, expected_version, by, |loaded, record, _| {
            if record.status != Status::Concluded {
                return Err(ServiceError::NotConcluded(name.into()));
            }
            let (status, winner) = (record.status, record.winner);
            Ok(Some(Decided {
                change: Change { archived_at: Some(now), ..Change::default() },
                event: ControlEvent::Status { status, winner, archived: true, reason: None },
                action: "experiment-archived",
                states: (Some(standing(loaded, record)), None),
            }))
        });
        match archived.await {
            Ok(_) | Err(ServiceError::Archived(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Conclude a running experiment on `winner` because of `reason`, unless the service did so
    /// before, in whichever process: who sets it running again wants it to run. Whether it was
    /// done.
    pub(crate) async fn conclude_by_itself(
        &self,
        loaded: &Arc<LoadedExperiment>,
        winner: usize,
        reason: String,
    ) -> Result<bool, ServiceError> {
        let (record, spec) = self.newest_record(loaded).await?;
        let done_before =
            self.store.find(loaded.id, &[CONCLUSION]).await?.iter().any(Option::is_some);
        // what is certain among those who took part here may not be among those who do now
        let among_others = spec.roster_changes != loaded.spec.roster_changes;
        if record.status != Status::Running
            || record.archived_at.is_some()
            || done_before
            || among_others
        {
            return Ok(false);
        }
        let now = self.clock.now_ms();
        let (status, winner) = (Status::Concluded, Some(winner as u16));
        let after = ExperimentRecord { status, winner, ..record.clone() };
        let mut stands = standing(loaded, &after);
        stands["reason"] = json!(reason);
        let audit =
            AuditNote::of_experiment(&Actor::service(), "experiment-concluded", &loaded.name, now)
                .changed(Some(standing(loaded, &record)), Some(stands));
        let change = Change {
            status: Some(status),
            winner: Some(winner),
            audit: Some(audit),
            ..Change::default()
        };
        let event = ControlEvent::Status { status, winner, archived: false, reason: Some(reason) };
        match self.commit_change(CONCLUSION, loaded, &record, change, event, now).await {
            // somebody was faster; the next look decides on what is then
            Err(ServiceError::Stale { .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }
}

/// A spec as the record has it.
pub(crate) fn text_of(spec: &ExperimentSpec) -> Result<String, ServiceError> {
    serde_json::to_string(spec)
        .map_err(|error| ServiceError::Internal(format!("the spec does not serialise: {error}")))
}

/// What the audit log says of a record.
fn standing(loaded: &LoadedExperiment, record: &ExperimentRecord) -> Value {
    let winner = record.winner.and_then(|winner| loaded.spec.rankers.get(usize::from(winner)));
    json!({"status": record.status, "winner": winner.map(|ranker| &ranker.id)})
}

/// The winner that an experiment of this record is given along with `status`.
fn winner_to_be(
    loaded: &LoadedExperiment,
    record: &ExperimentRecord,
    status: Status,
    winner: Option<&str>,
) -> Result<Option<u16>, ServiceError> {
    let refuse =
        |detail: String| Err(ServiceError::Invalid(vec![FieldError::new("/winner", detail)]));
    Ok(match (status, winner) {
        (Status::Concluded, Some(id)) => match loaded.spec.ranker_index(id) {
            Some(index) if loaded.spec.is_retired(index) => {
                return refuse(format!("ranker `{id}` of experiment `{}` is retired", loaded.name));
            }
            Some(index) => Some(index as u16),
            None => return refuse(format!("experiment `{}` has no ranker `{id}`", loaded.name)),
        },
        (Status::Concluded, None) if record.status == Status::Concluded => record.winner,
        (Status::Concluded, None) => Some(loaded.fold()?.policy().champion() as u16),
        (_, Some(_)) => return refuse("`winner` goes with the status `concluded` only".into()),
        (_, None) => None,
    })
}
