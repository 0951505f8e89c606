//! Roster changes: adding and retiring rankers while an experiment runs.
//!
//! Each change is one log entry and one version of the record, in one transaction. The log says
//! from which position on a ranker takes part; the spec lists all rankers there ever were. A ranker
//! keeps its index forever, so that duels issued before a change still name the same rankers after
//! it.

use serde_json::json;

use crate::service::change::{Decided, Decision, Newest};
use crate::service::error::ServiceError;
use dueling_bandits::MIN_RANKERS;
use rankduel_engine::experiment_spec::{
    ExperimentSpec, FieldError, RANKERS_MAX, Ranker, WHOLE_COVERAGE, excerpt,
};
use rankduel_store::ExperimentRecord;
use rankduel_store::events::{ControlEvent, Status};

/// Decide to add a ranker. Adding an active one with the same description changes nothing.
pub(super) fn enlist(on: &Newest<'_>, ranker: &Ranker) -> Decision {
    let &Newest { spec, .. } = on;
    let name = &on.record.name;
    if let Some(known) = spec.ranker_index(&ranker.id) {
        let id = &ranker.id;
        if spec.is_retired(known) {
            return Err(fixed(format!(
                "ranker `{id}` was retired from experiment `{name}`, and its old duels would count for the new \
                     ranker; enlist it under another id"
            )));
        }
        return match spec.rankers[known] == *ranker {
            true => Ok(None),
            false => Err(fixed(format!(
                "experiment `{name}` has a ranker `{id}` with a different description"
            ))),
        };
    }
    if spec.rankers.len() >= RANKERS_MAX {
        return Err(fixed(format!(
            "experiment `{name}` has had {RANKERS_MAX} rankers, including retired ones, which is the \
                 limit; create another experiment with those that are still of interest"
        )));
    }
    let index = spec.rankers.len();
    let changed = spec.with_enlisted(ranker.clone());
    let errors: Vec<_> = changed
        .errors()
        .into_iter()
        .filter_map(|error| {
            let at = error.pointer.strip_prefix(&format!("/rankers/{index}"))?;
            Some(FieldError::new(format!("/enlist{at}"), error.detail))
        })
        .collect();
    ServiceError::unless_valid(errors)?;
    let event = ControlEvent::RankerEnlisted { ranker: index as u16, id: ranker.id.clone() };
    let audited = (json!({"enlisted": null}), json!({"enlisted": ranker}));
    changed_roster(on, &changed, event, audited)
}

/// Decide to retire a ranker. `reason` is that of the service, if it does so automatically.
pub(super) fn retire(on: &Newest<'_>, id: &str, reason: Option<&str>) -> Decision {
    let &Newest { spec, .. } = on;
    let name = &on.record.name;
    let Some(index) = spec.ranker_index(id) else {
        let detail = format!("experiment `{name}` has no ranker `{}`", excerpt(id));
        return Err(ServiceError::field("/retire", detail));
    };
    if spec.is_retired(index) {
        return Ok(None);
    }
    let is_shown = spec.coverage < WHOLE_COVERAGE || spec.alone > 0.0;
    if is_shown && spec.control.as_deref() == Some(id) {
        return Err(fixed(format!(
            "ranker `{id}` is the control of experiment `{name}`, which is shown alone (`coverage`, `alone`); name \
                 another control first"
        )));
    }
    if spec.held_out() == Some(index) {
        return Err(fixed(format!(
            "ranker `{id}` of experiment `{name}` is the second id of its canary and takes no part in the \
                 tournament; retire its first id to end the comparison"
        )));
    }
    if spec.roster().is_none_or(|roster| roster.active().len() <= MIN_RANKERS) {
        return Err(fixed(format!(
            "without ranker `{id}`, experiment `{name}` would have fewer than {MIN_RANKERS} rankers; enlist another \
                 one first, or conclude the experiment"
        )));
    }
    let changed = spec.with_retired(index);
    if let Some(error) = changed.errors().into_iter().next() {
        return Err(fixed(format!("without ranker `{id}`, {}", error.detail)));
    }
    let mut after = json!({"retired": id});
    if let Some(reason) = reason {
        after["reason"] = json!(reason);
    }
    let reason = reason.map(str::to_owned);
    let event = ControlEvent::RankerRetired { ranker: index as u16, reason };
    changed_roster(on, &changed, event, (json!({"retired": null}), after))
}

fn changed_roster(
    on: &Newest<'_>,
    changed: &ExperimentSpec,
    event: ControlEvent,
    (before, after): (serde_json::Value, serde_json::Value),
) -> Decision {
    refuse_fixed(on.record, on.spec)?;
    Ok(Some(Decided::of_spec(changed, event, before, after)))
}

/// Refuse any roster change that the status or the policy does not allow.
fn refuse_fixed(record: &ExperimentRecord, spec: &ExperimentSpec) -> Result<(), ServiceError> {
    let name = &record.name;
    if record.status == Status::Concluded {
        return Err(fixed(format!("experiment `{name}` is concluded; set it running again first")));
    }
    match spec.policy.description().fixed_rankers {
        Some(why) => Err(fixed(format!(
            "policy `{}` of experiment `{name}` cannot add or retire rankers: {why}",
            spec.policy.kind()
        ))),
        None => Ok(()),
    }
}

fn fixed(why: String) -> ServiceError {
    ServiceError::FixedRankers(why)
}
