//! Excluding units whose answers must not count, such as machines that were found afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::service::Service;
use crate::service::change::{CHANGED, Decided};
use crate::service::error::ServiceError;
use crate::service::units::{UnitHasher, unit_error};
use rankduel_engine::access::Actor;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::Change;
use rankduel_store::events::{ControlEvent, Exclusion, UnitHash};

impl Service {
    /// Exclude units, named by the caller's ids and by hashes, if the experiment is at
    /// `expected_version` (`None` for any version). The log is folded anew without their answers.
    /// Units that are excluded already are left out; without another one, nothing changes.
    pub async fn exclude(
        &self,
        name: &str,
        expected_version: Option<u64>,
        units: &[String],
        hashes: Vec<UnitHash>,
        reason: String,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        for (index, unit) in units.iter().enumerate() {
            if let Some(detail) = unit_error(unit) {
                return Err(ServiceError::field(format!("/exclude/units/{index}"), detail));
            }
        }
        if units.is_empty() && hashes.is_empty() {
            let detail = "name at least one unit, in `units` or `hashes`";
            return Err(ServiceError::field("/exclude", detail));
        }
        self.change_experiment(name, expected_version, by, |loaded, record, spec| {
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
                return Err(ServiceError::CannotReplay(format!(
                    "the log of experiment `{name}` was pruned up to position {}, and it would have to be folded from its \
                     beginning, without the answers of these units",
                    record.pruned_to
                )));
            }
            let exclusion =
                Exclusion { units: wanted.into_iter().collect(), reason: reason.clone() };
            let changed = spec.with_exclusion(exclusion.clone());
            let errors = changed.errors();
            if !errors.is_empty() {
                return Err(ServiceError::Invalid(errors));
            }
            Ok(Some(Decided {
                change: Change { spec: Some(changed.to_text()), ..Change::default() },
                event: ControlEvent::UnitsExcluded(exclusion.clone()),
                action: CHANGED,
                before: Some(json!({"excluded": null})),
                after: Some(json!({"excluded": exclusion})),
            }))
        })
        .await
    }
}
