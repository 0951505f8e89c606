//! Changes of an experiment's control, of its method of interleaving, and of the units that count.

use std::collections::BTreeSet;

use serde_json::json;

use crate::service::change::{CHANGED, Decided, Decision, Newest};
use crate::service::error::ServiceError;
use crate::service::units::{UnitHasher, unit_error};
use rankduel_engine::experiment_spec::MAX_CONTROLS;
use rankduel_engine::experiment_spec::page_rules::{
    CurrentMethod, MAX_METHOD_VERSIONS, interleaving_text,
};
use rankduel_store::Change;
use rankduel_store::events::{ControlEvent, Exclusion, Status, UnitHash};

/// Decide which ranker is the control.
pub(super) fn control(on: &Newest<'_>, id: &str) -> Decision {
    let &Newest { record, spec, .. } = on;
    let refuse = |detail: String| Err(ServiceError::field("/control", detail));
    let changed = spec.with_control(id.to_owned());
    ServiceError::unless_valid(changed.errors())?;
    let Some(ranker) = changed.ranker_index(id) else { return Ok(None) };
    if spec.is_retired(ranker) {
        return refuse(format!("ranker `{id}` is retired; name an active one"));
    }
    if spec.control.as_deref() == Some(id) {
        return Ok(None);
    }
    if record.status == Status::Concluded {
        return refuse(format!(
            "experiment `{}` is concluded, so nothing meets a control; set it running again first",
            record.name
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
}

/// Decide a change of the method of interleaving.
pub(super) fn interleaving(on: &Newest<'_>, method: interleaving::Spec) -> Decision {
    method.validate().map_err(|error| {
        let pointer = format!("/interleaving/{}", error.parameter);
        ServiceError::field(pointer, error.detail)
    })?;
    let &Newest { loaded, record, .. } = on;
    let current = CurrentMethod::of(record, &loaded.spec.pages)
        .map_err(|why| ServiceError::unreadable(&record.name, why))?;
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
}

/// Units to exclude.
#[derive(Debug, Clone)]
pub struct Excluded {
    /// By the ids of the caller.
    pub units: Vec<String>,
    pub hashes: Vec<UnitHash>,
    /// Why, for people.
    pub reason: String,
}

/// Decide to exclude units. Those that are excluded already are left out; without another one,
/// nothing changes.
pub(super) fn exclude(on: &Newest<'_>, excluded: &Excluded) -> Decision {
    let Excluded { units, hashes, reason } = excluded;
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
    let &Newest { loaded, record, spec, .. } = on;
    let hasher = UnitHasher::of(loaded);
    let named = units.iter().map(|unit| UnitHash(hasher.hash(unit)));
    let mut wanted: BTreeSet<_> = named.chain(hashes.iter().copied()).collect();
    for known in spec.excluded_units() {
        wanted.remove(&known);
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    if record.pruned_to > 0 {
        return Err(ServiceError::LogPruned(format!(
            "the log of experiment `{}` was pruned up to position {}, and it would have to be folded \
             from its beginning, without the answers of these units",
            record.name, record.pruned_to
        )));
    }
    let exclusion = Exclusion { units: wanted.into_iter().collect(), reason: reason.clone() };
    let changed = spec.with_exclusion(exclusion.clone());
    ServiceError::unless_valid(changed.errors())?;
    let (before, after) = (json!({"excluded": null}), json!({"excluded": exclusion}));
    let event = ControlEvent::UnitsExcluded(exclusion);
    Ok(Some(Decided::of_spec(&changed, event, before, after)))
}
