//! Changes of an experiment's policy, of its control, of its method of interleaving, and of the
//! units that count.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::service::Service;
use crate::service::change::{CHANGED, Decided, change_experiment};
use crate::service::error::ServiceError;
use crate::service::units::{UnitHasher, unit_error};
use dueling_bandits::PolicySpec;
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::page_rules::{
    CurrentMethod, MAX_METHOD_VERSIONS, interleaving_text,
};
use rankduel_engine::experiment_spec::{FieldError, MAX_CONTROLS, MAX_POLICIES};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::{ControlEvent, Exclusion, Status, UnitHash};
use rankduel_store::{Change, ExperimentRecord};

/// Change the policy, if the experiment is at `expected_version` (`None` for any version). The
/// new policy folds the log from its beginning. Setting the current policy changes nothing.
pub async fn set_policy(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    policy: PolicySpec,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    change_experiment(service, name, expected_version, by, |_, record, spec| {
        if spec.policy == policy {
            return Ok(None);
        }
        refuse_pruned(record, "another policy would have to fold it from its beginning")?;
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
        let event = ControlEvent::Policy { policy: policy.clone() };
        let (before, after) = (json!({"policy": spec.policy}), json!({"policy": policy}));
        Ok(Some(Decided::of_spec(&changed, event, before, after)))
    })
    .await
}

/// Name the ranker that people see today, if the experiment is at `expected_version` (`None` for
/// any version). Claims are made against it with the answers to duels issued from now on. Naming
/// the current control changes nothing.
pub async fn set_control(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    id: &str,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    change_experiment(service, name, expected_version, by, |_, record, spec| {
        let refuse = |detail: String| Err(ServiceError::field("/control", detail));
        let changed = spec.with_control(id.to_owned());
        let errors = changed.errors();
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        let Some(ranker) = changed.ranker_index(id) else { return Ok(None) };
        if spec.is_retired(ranker) {
            return refuse(format!("ranker `{id}` is retired; name an active one"));
        }
        if spec.control.as_deref() == Some(id) {
            return Ok(None);
        }
        if record.status == Status::Concluded {
            return refuse(format!(
                "experiment `{name}` is concluded, so nothing meets a control; set it running again \
                 first"
            ));
        }
        if spec.former_controls.len() >= MAX_CONTROLS {
            return refuse(format!(
                "the control has changed {MAX_CONTROLS} times, which is the limit; create a new \
                 experiment"
            ));
        }
        let event = ControlEvent::ControlNamed { ranker: ranker as u16 };
        let (before, after) = (json!({"control": spec.control}), json!({"control": id}));
        Ok(Some(Decided::of_spec(&changed, event, before, after)))
    })
    .await
}

/// Change the interleaving method from the next log position on, if the experiment is at
/// `expected_version` (`None` for any version). Setting the current method changes nothing.
pub async fn set_interleaving(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    method: interleaving::Spec,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    method.validate().map_err(|error| {
        let pointer = format!("/interleaving/{}", error.parameter);
        ServiceError::field(pointer, error.detail)
    })?;
    change_experiment(service, name, expected_version, by, |loaded, record, _| {
        let current = CurrentMethod::of(record, &loaded.spec.pages)
            .map_err(|why| ServiceError::unreadable(name, why))?;
        if current.method == method {
            return Ok(None);
        }
        if current.version >= MAX_METHOD_VERSIONS {
            let detail = format!(
                "the experiment has had {MAX_METHOD_VERSIONS} methods, which is the limit; create a new \
                 experiment"
            );
            return Err(ServiceError::field("/interleaving", detail));
        }
        let version = current.version + 1;
        let text = interleaving_text(version, &method);
        Ok(Some(Decided {
            change: Change { interleaving: Some(text), ..Change::default() },
            event: ControlEvent::Interleaving { version, method },
            action: CHANGED,
            before: Some(json!({"interleaving": current.method})),
            after: Some(json!({"interleaving": method})),
        }))
    })
    .await
}

/// Exclude units, named by the caller's ids and by hashes, if the experiment is at
/// `expected_version` (`None` for any version). The log is folded anew without their answers.
/// Units that are excluded already are left out; without another one, nothing changes.
pub async fn exclude(
    service: &Service,
    name: &str,
    expected_version: Option<u64>,
    (units, hashes): (&[String], Vec<UnitHash>),
    reason: String,
    by: &Actor,
) -> Result<Arc<LoadedExperiment>, ServiceError> {
    for (index, unit) in units.iter().enumerate() {
        let empty = unit.is_empty().then(|| "an empty id is no unit".to_owned());
        if let Some(detail) = empty.or_else(|| unit_error(unit)) {
            return Err(ServiceError::field(format!("/exclude/units/{index}"), detail));
        }
    }
    if units.is_empty() && hashes.is_empty() {
        let detail = "name at least one unit, in `units` or `hashes`";
        return Err(ServiceError::field("/exclude", detail));
    }
    change_experiment(service, name, expected_version, by, |loaded, record, spec| {
        let hasher = UnitHasher::of(loaded);
        let named = units.iter().map(|unit| UnitHash(hasher.hash(unit)));
        let mut wanted: BTreeSet<_> = named.chain(hashes.iter().copied()).collect();
        for known in spec.excluded_units() {
            wanted.remove(&known);
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        let why =
            "it would have to be folded from its beginning, without the answers of these units";
        refuse_pruned(record, why)?;
        let exclusion = Exclusion { units: wanted.into_iter().collect(), reason: reason.clone() };
        let changed = spec.with_exclusion(exclusion.clone());
        let errors = changed.errors();
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        let (before, after) = (json!({"excluded": null}), json!({"excluded": exclusion}));
        let event = ControlEvent::UnitsExcluded(exclusion);
        Ok(Some(Decided::of_spec(&changed, event, before, after)))
    })
    .await
}

/// Refuse a change after which the log would have to be folded from its beginning, if that was
/// pruned. `why` says what needs the beginning.
fn refuse_pruned(record: &ExperimentRecord, why: &str) -> Result<(), ServiceError> {
    if record.pruned_to == 0 {
        return Ok(());
    }
    Err(ServiceError::CannotReplay(format!(
        "the log of experiment `{}` was pruned up to position {}, and {why}",
        record.name, record.pruned_to
    )))
}
