//! Which answers are complete: up to which time of issue no answer can come any more.
//!
//! The verdict counts answers in cohorts by the time of issue
//! ([`Cohorts`](dueling_bandits::evidence::Cohorts)). A process that finds a cohort complete
//! appends an entry that says so, and every process counts the cohort when it folds that entry. The
//! time is rounded to the end of a cohort and is part of the nonce, so the entries of several
//! processes are repeats of each other. Each says how many duels of the cohorts its process has
//! issued, and how many of these were answered: a sample, since only the log is shared.

use std::sync::Arc;

use crate::Engine;
use crate::error::EngineError;
use crate::loaded::LoadedExperiment;
use dueling_bandits::evidence::balance::Cell;
use rankduel_store::Nonce;
use rankduel_store::events::ControlEvent;

/// Added to the window: clocks of servers differ, and an answer that was accepted in time takes a
/// moment to get into the log.
pub const SLACK_MS: i64 = 5_000;
/// High half of the nonces of these entries. No process has it.
const COHORTS: u64 = u64::MAX - 2;

impl Engine {
    /// Append that cohorts of the experiment are complete, if there are any with answers.
    pub(crate) async fn complete_cohorts(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), EngineError> {
        if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(());
        }
        let Some(until) = loaded.complete_until(self.now_ms(), self.store.serves_one_process())?
        else {
            return Ok(());
        };
        let nonce = Nonce::from(COHORTS) << 64 | Nonce::from(until.cast_unsigned());
        let Cell { issued, answered } = match loaded.spec.decide_by {
            None => loaded.open_duels().take_until(until),
            // most pages have no order, and none is lost
            Some(_) => Cell::default(),
        };
        let event = ControlEvent::CohortsComplete { issued_before: until, issued, answered };
        self.append_control(loaded, nonce, event).await.map(drop)
    }
}

impl LoadedExperiment {
    /// The end of the newest complete cohort, if it or an earlier one has answers that wait.
    /// `is_alone`: no other process issues duels of this store.
    fn complete_until(&self, now_ms: i64, is_alone: bool) -> Result<Option<i64>, EngineError> {
        let fold = self.fold()?;
        let cohorts = fold.run().cohorts();
        let Some(oldest_end) = fold.oldest_cohort_end() else { return Ok(None) };
        let mut until = cohorts.ended_until(now_ms - SLACK_MS);
        // the duels of a batch that was closed are not counted as open any more
        let is_answered = self.spec.decide_by.is_none();
        if is_alone && is_answered && fold.run().policy().batches().is_none() {
            // duels of an earlier process are open as long as their window lasts
            if self.issued.is_first || cohorts.complete_until() >= self.issued.since_ms {
                until = until.max(self.open_duels().answered_until(now_ms));
            }
        }
        // clicks that wait to be settled
        if let Some(oldest) = fold.state().open_pages.oldest_issue() {
            until = until.min(oldest);
        }
        let until = cohorts.start_of_cohort(until);
        Ok((until >= oldest_end).then_some(until))
    }
}
