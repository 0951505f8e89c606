//! Segments that become experiments of their own, and how requests about them get there.
//!
//! Callers go on calling the experiment that the segment was split from. A page that names the
//! segment is made by the segment's experiment, and feedback goes by its `duel_id` to the
//! experiment that issued it. The entry of the log that splits a segment off and the new experiment
//! are written in one transaction; every server finds the split when it folds that entry.

use std::sync::Arc;

use serde_json::json;

use crate::service::Service;
use crate::service::change::{CHANGED, Decided, Decision, Newest};
use crate::service::error::ServiceError;
use crate::service::lifecycle::new_experiment;
use rankduel_engine::experiment_spec::page_rules::CurrentMethod;
use rankduel_engine::experiment_spec::{ExperimentSpec, FieldError, Split, SplitFrom, name_error};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::audience::Segment;
use rankduel_store::events::{ControlEvent, Status};
use rankduel_store::{Change, ExperimentId};

/// Decide to split a segment off. Doing so again changes nothing.
pub(super) fn split(on: &Newest<'_>, segment: Segment, own_name: Option<&str>) -> Decision {
    let &Newest { record, spec, by, .. } = on;
    let name = &record.name;
    if let Some(Split { experiment, .. }) = spec.split_of(segment) {
        if own_name.is_none_or(|own| own == experiment) {
            return Ok(None);
        }
        let detail = format!("`{segment}` is the experiment `{experiment}` already");
        return Err(ServiceError::field("/split/experiment", detail));
    }
    let own_name = own_name.map_or_else(|| format!("{name}.{segment}"), str::to_owned);
    if let Some(error) = split_error(spec, record.status, segment) {
        return Err(ServiceError::field("/split/segment", error));
    }
    if let Some(FieldError { detail, .. }) = name_error(&own_name) {
        let detail = format!("`{own_name}` is no name: {detail}; choose another one");
        return Err(ServiceError::field("/split/experiment", detail));
    }
    let method = CurrentMethod::of(record, &spec.pages)
        .map_err(|why| ServiceError::unreadable(name, why))?;
    let from = SplitFrom { experiment: name.clone(), segment };
    let own = spec.of_segment(from, method.method);
    if let Some(FieldError { pointer, detail }) = own.errors().into_iter().next() {
        let detail = format!("its experiment would be invalid at `{pointer}`: {detail}");
        return Err(ServiceError::field("/split/segment", detail));
    }
    let split = Split { segment, experiment: own_name.clone() };
    let new = new_experiment(&own_name, &own, record.seed, by, on.service.now_ms())?;
    Ok(Some(Decided {
        change: Change {
            spec: Some(spec.with_split(split.clone()).to_text()),
            creates: Some(Box::new(new)),
            ..Change::default()
        },
        event: ControlEvent::Split { segment, experiment: own_name.clone() },
        action: CHANGED,
        before: Some(json!({"split": null})),
        after: Some(json!({"split": split})),
    }))
}

fn split_error(spec: &ExperimentSpec, status: Status, segment: Segment) -> Option<String> {
    if !spec.segments.contains(&segment) {
        let declared: Vec<_> = spec.segments.iter().map(|own| format!("`{own}`")).collect();
        return Some(match declared.is_empty() {
            true => "the experiment declares no `segments`; create one that does".to_owned(),
            false => format!(
                "`{segment}` is not declared; the declared segments are {}",
                declared.join(", ")
            ),
        });
    }
    if status == Status::Concluded {
        return Some("the experiment is concluded; set it running again first".to_owned());
    }
    let why = "the experiment counts answers as they arrive (`answer_window_seconds` is 0), so \
               nobody can tell when all answers from before the split are known; create one with \
               an answer window";
    spec.counts_at_once().then(|| why.to_owned())
}

/// Refuse to archive an experiment that still gets the pages of a segment.
pub(super) async fn refuse_serving(
    service: &Service,
    loaded: &LoadedExperiment,
) -> Result<(), ServiceError> {
    let Some(from) = &loaded.spec.split_from else { return Ok(()) };
    let Ok(whole) = service.experiment(&from.experiment).await else { return Ok(()) };
    let is_archived = whole.with_record(|record| record.archived_at.is_some());
    let split = whole.spec.split_of(from.segment);
    if !is_archived && split.is_some_and(|split| split.experiment == loaded.name) {
        return Err(ServiceError::InUse { name: loaded.name.clone(), by: from.experiment.clone() });
    }
    Ok(())
}

impl Service {
    /// The experiment that makes the pages of this segment for callers of the experiment with this
    /// name.
    pub async fn experiment_for(
        &self,
        name: &str,
        segment: Option<Segment>,
    ) -> Result<Arc<LoadedExperiment>, ServiceError> {
        let loaded = self.experiment(name).await?;
        let Some(split) = segment.and_then(|segment| loaded.spec.split_of(segment)) else {
            return Ok(loaded);
        };
        // an archived experiment issues no duels, whatever the segment
        if loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(loaded);
        }
        let own = self.experiment(&split.experiment).await?;
        // a copy under another name has no segments elsewhere
        let is_own = own.spec.split_from.as_ref().is_some_and(|from| from.experiment == name);
        Ok(if is_own { own } else { loaded })
    }

    /// The experiment with this id, if a segment of this one was split off into it. Another process
    /// may have done so a moment ago.
    pub(super) async fn split_off_with_id(
        &self,
        loaded: &Arc<LoadedExperiment>,
        id: ExperimentId,
    ) -> Result<Option<Arc<LoadedExperiment>>, ServiceError> {
        if loaded.spec.segments.is_empty() {
            return Ok(None);
        }
        if let Some(own) = self.split_of_spec(&loaded.spec, id).await? {
            return Ok(Some(own));
        }
        loaded.catch_up(&*self.engine.store).await?;
        self.split_of_spec(&self.experiment(&loaded.name).await?.spec, id).await
    }

    async fn split_of_spec(
        &self,
        spec: &ExperimentSpec,
        id: ExperimentId,
    ) -> Result<Option<Arc<LoadedExperiment>>, ServiceError> {
        for split in &spec.splits {
            let own = self.experiment(&split.experiment).await?;
            if own.id == id {
                return Ok(Some(own));
            }
        }
        Ok(None)
    }
}
