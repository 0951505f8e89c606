//! Changing the policy of an experiment.

use std::sync::Arc;

use serde_json::json;

use crate::service::Service;
use crate::service::change::{CHANGED, Decided};
use crate::service::error::ServiceError;
use dueling_bandits::PolicySpec;
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::{FieldError, MAX_POLICIES};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::Change;
use rankduel_store::events::ControlEvent;

impl Service {
    /// Change the policy, if the experiment is at `expected_version` (`None` for any version). The
    /// new policy folds the log from its beginning. Setting the current policy changes nothing.
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
                    "the log of experiment `{name}` was pruned up to position {}, and another policy would have to fold it \
                     from its beginning",
                    record.pruned_to
                )));
            }
            if !spec.roster_changes.is_none()
                && let Some(why) = policy.description().fixed_rankers
            {
                return Err(ServiceError::FixedRankers(format!(
                    "experiment `{name}` has roster changes, and policy `{}` cannot fold a log with them: {why}",
                    policy.kind()
                )));
            }
            let changed = spec.under(policy.clone());
            let mut errors = changed.errors();
            if changed.former_policies.len() >= MAX_POLICIES {
                let detail =
                    format!("the experiment has had {MAX_POLICIES} policies, which is the limit");
                errors.push(FieldError::new("/policy", detail));
            }
            if !errors.is_empty() {
                return Err(ServiceError::Invalid(errors));
            }
            Ok(Some(Decided {
                change: Change { spec: Some(changed.to_text()), ..Change::default() },
                event: ControlEvent::Policy { policy: policy.clone() },
                action: CHANGED,
                before: Some(json!({"policy": spec.policy})),
                after: Some(json!({"policy": policy})),
            }))
        })
        .await
    }
}
