//! Changing the interleaving method of an experiment.

use std::sync::Arc;

use serde_json::json;

use crate::service::Service;
use crate::service::change::{CHANGED, Decided};
use crate::service::error::ServiceError;
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::page_rules::{
    CurrentMethod, MAX_METHOD_VERSIONS, interleaving_text,
};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::Change;
use rankduel_store::events::ControlEvent;

impl Service {
    /// Change the interleaving method from the next log position on, if the experiment is at
    /// `expected_version` (`None` for any version). Setting the current method changes nothing.
    pub async fn set_interleaving(
        &self,
        name: &str,
        expected_version: Option<u64>,
        method: interleaving::Spec,
        by: &Actor,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        method.validate().map_err(|error| {
            let pointer = format!("/interleaving/{}", error.parameter);
            ServiceError::field(pointer, error.detail)
        })?;
        self.change_experiment(name, expected_version, by, |loaded, record, _| {
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
}
