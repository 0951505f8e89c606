//! How a change of the experiment changes the state.

use serde_json::Value;

use super::state::BatchTimes;
use super::{Fold, FoldError};
use crate::experiment_spec::{ExperimentSpec, Patch};
use rankduel_store::LogEntry;
use rankduel_store::events::{ControlEvent, Event};

impl Fold {
    /// The state after the first entry of a log, which creates the experiment. `newest` is the spec
    /// at the end of the log: the units that it excludes never count.
    pub fn created(
        first: Option<&LogEntry>,
        newest: &ExperimentSpec,
        seed: u64,
        created_at: i64,
    ) -> Result<Self, FoldError> {
        let refuse = |detail: String| FoldError { position: 1, detail };
        match first {
            Some(entry @ LogEntry { position: 1, event, .. }) => {
                let Event::Control(ControlEvent::Created { spec }) = event else {
                    return Err(refuse("it does not create the experiment".into()));
                };
                let created = ExperimentSpec::read_json(spec).map_err(refuse)?;
                let exclusions = newest.exclusions.clone();
                let mut fold =
                    Self::start(&ExperimentSpec { exclusions, ..created }, seed, created_at);
                fold.apply(entry)?;
                Ok(fold)
            }
            _ => Err(refuse("it is missing".into())),
        }
    }

    /// Fold a change of the spec, of the status or of the archive.
    pub(super) fn change(&mut self, patch: &Value, position: u64, at: i64) -> Result<(), String> {
        let patch = Patch::read(patch)?;
        let spec = self.state.spec.patched(&patch).map_err(|why| why.to_string())?;
        let before = self.state.lifecycle;
        let specs = (&self.state.spec, &spec);
        let lifecycle = before.patched(&patch, specs, at).map_err(|why| why.to_string())?;
        if let Some(error) = lifecycle.error(spec.rankers.len()) {
            return Err(format!("it says of the experiment: {error}"));
        }
        self.follow(&spec, position, at)?;
        (self.state.spec, self.state.lifecycle) = (spec, lifecycle);
        self.state.version += 1;
        if lifecycle != before {
            self.follow_lifecycle(&patch, position, at);
        }
        Ok(())
    }

    /// Change what rests on the spec, from the present one to `next`.
    fn follow(&mut self, next: &ExperimentSpec, position: u64, at: i64) -> Result<(), String> {
        let spec = &self.state.spec;
        let (rankers, retired) = (spec.rankers.len(), spec.retired.len());
        let window_ms = next.answer_window_ms();
        let other_window = window_ms != spec.answer_window_ms();
        let other_method = next.pages.interleaving_version != spec.pages.interleaving_version;
        let other_control = next.control != spec.control;
        let excludes = next.exclusions.len() > spec.exclusions.len();
        if other_window && !self.run.change_window(window_ms, at) {
            return Err(format!("it sets an answer window of {window_ms} ms"));
        }
        for _ in rankers..next.rankers.len() {
            self.run.enlist(at).map_err(|why| why.to_string())?;
            self.state.counts.enlist();
            self.state.history.enlist();
            if let Some(guardrails) = &mut self.state.guardrails {
                guardrails.enlist();
            }
        }
        for &ranker in &next.retired[retired..] {
            self.run.retire(ranker.into(), at).map_err(|why| why.to_string())?;
        }
        if let Some(control) = next.control_index().filter(|_| other_control) {
            self.state.controls += 1;
            self.run.change_control(control, next.goal, at);
            if let Some(guardrails) = &mut self.state.guardrails {
                guardrails.name_control(control, at);
            }
        }
        if other_method {
            self.state.methods.add(position, next.pages.interleaving);
        }
        if excludes {
            self.state.excluded.exclude_from(position);
            self.renumber_batch();
        }
        Ok(())
    }

    /// The status or the archive has changed.
    fn follow_lifecycle(&mut self, patch: &Patch, position: u64, at: i64) {
        self.state.batches.moved_at = at;
        self.run.restart_on_drift(self.state.restarts_on_drift());
        if patch.archived {
            return;
        }
        self.state.status_since = position;
        self.state.shown_before_status = self.state.counts.appearances().to_vec();
        match &patch.reason {
            Some(reason) if self.state.lifecycle.is_concluded() => {
                self.state.concluded_by_itself = Some(reason.clone());
            }
            Some(_) => {}
            // a person has decided otherwise; the service does not conclude it again
            None => self.state.concluded_by_itself.iter_mut().for_each(String::clear),
        }
    }

    /// Before this entry the log was folded in another state, in which the number of the open batch
    /// may have been another batch's. Where results were posted for that one, the open one gets
    /// another number: a post is for one batch, for ever.
    fn renumber_batch(&mut self) {
        let BatchTimes { posted, posted_whole, .. } = self.state.batches;
        let is_taken = |open: u32| open < posted || open <= posted_whole;
        if self.run.policy().batch().is_some_and(is_taken) {
            self.run.policy_mut().renumber_batch(posted.saturating_add(1));
        }
    }
}
