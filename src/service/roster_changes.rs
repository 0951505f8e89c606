//! Rankers that come and go while an experiment runs.
//!
//! Each change is one entry of the log and one version of the record, in one transaction: the log
//! says from where on a ranker takes part, and the spec lists all that there ever were. A ranker
//! keeps its index for ever, so that what was handed out before a change still names the same
//! rankers after it.

use std::sync::Arc;

use serde_json::json;

use crate::access::Actor;
use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::{ExperimentSpec, FieldError, Ranker};
use crate::engine::loaded::LoadedExperiment;
use crate::events::{ControlEvent, Status};
use crate::service::Service;
use crate::service::change::Decided;
use crate::service::lifecycle::{CHANGED, text_of};
use crate::store::{Change, ExperimentRecord};
use dueling_bandits::{MAX_RANKERS, MIN_RANKERS};

impl Service {
    /// One more ranker takes part from here on, if the experiment is still at `expected_version`
    /// (`None`: whatever it is at). A ranker that takes part already, as it is described, changes
    /// nothing.
    pub async fn enlist(
        &self,
        name: &str,
        expected_version: Option<u64>,
        ranker: Ranker,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        let audited = (json!({"enlisted": null}), json!({"enlisted": ranker}));
        self.come_or_go(name, expected_version, by, audited, |spec| {
            if let Some(known) = spec.ranker_index(&ranker.id) {
                let id = &ranker.id;
                if spec.is_retired(known) {
                    return Err(fixed(format!(
                        "ranker `{id}` was retired from experiment `{name}`, and its duels would count for whoever comes \
                         back; enlist it under another id"
                    )));
                }
                return match spec.rankers[known] == ranker {
                    true => Ok(None),
                    false => Err(fixed(format!(
                        "experiment `{name}` has a ranker `{id}`, and describes it otherwise"
                    ))),
                };
            }
            if spec.rankers.len() >= MAX_RANKERS {
                return Err(fixed(format!(
                    "experiment `{name}` has had {MAX_RANKERS} rankers, the retired included, which is all that one takes"
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
            if !errors.is_empty() {
                return Err(ServiceError::Invalid(errors));
            }
            let event = ControlEvent::RankerEnlisted { ranker: index as u16, id: ranker.id.clone() };
            Ok(Some((changed, event)))
        })
        .await
    }

    /// A ranker takes part no more: it is never chosen again, and answers of its duels that are out
    /// still count. If the experiment is still at `expected_version` (`None`: whatever it is at).
    /// One that was retired before changes nothing.
    pub async fn retire(
        &self,
        name: &str,
        expected_version: Option<u64>,
        id: &str,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        let audited = (json!({"retired": null}), json!({"retired": id}));
        self.come_or_go(name, expected_version, by, audited, |spec| {
            let Some(index) = spec.ranker_index(id) else {
                let shown: String = id.chars().take(100).collect();
                let detail = format!("experiment `{name}` has no ranker `{shown}`");
                return Err(ServiceError::Invalid(vec![FieldError::new("/retire", detail)]));
            };
            if spec.is_retired(index) {
                return Ok(None);
            }
            if spec.rankers.len() - spec.roster_changes.retired.len() <= MIN_RANKERS {
                return Err(fixed(format!(
                    "without ranker `{id}` experiment `{name}` would have fewer than {MIN_RANKERS}; enlist another one before, \
                     or conclude the experiment"
                )));
            }
            let event = ControlEvent::RankerRetired { ranker: index as u16 };
            Ok(Some((spec.with_retired(index), event)))
        })
        .await
    }

    /// What `decide` makes of the spec as it is: the changed one and the event that says so, or
    /// nothing.
    async fn come_or_go(
        &self,
        name: &str,
        expected_version: Option<u64>,
        by: &Actor,
        (before, after): (serde_json::Value, serde_json::Value),
        decide: impl Fn(&ExperimentSpec) -> Result<Option<(ExperimentSpec, ControlEvent)>, ServiceError>,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        self.change_experiment(name, expected_version, by, |_, record, spec| {
            let Some((changed, event)) = decide(spec)? else { return Ok(None) };
            refuse_fixed(record, spec)?;
            let change = Change { spec: Some(text_of(&changed)?), ..Change::default() };
            let states = (Some(before.clone()), Some(after.clone()));
            Ok(Some(Decided { change, event, action: CHANGED, states }))
        })
        .await
    }
}

/// Why no ranker can come or go now, whoever it is.
fn refuse_fixed(record: &ExperimentRecord, spec: &ExperimentSpec) -> Result<(), ServiceError> {
    let name = &record.name;
    if record.status == Status::Concluded {
        return Err(fixed(format!(
            "experiment `{name}` is concluded; set it running again before"
        )));
    }
    match spec.policy.description().fixed_rankers {
        Some(why) => Err(fixed(format!(
            "policy `{}` of experiment `{name}` cannot take rankers in or let them go: {why}",
            spec.policy.kind()
        ))),
        None => Ok(()),
    }
}

fn fixed(why: String) -> ServiceError {
    ServiceError::FixedRankers(why)
}
