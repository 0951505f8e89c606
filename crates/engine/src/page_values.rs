//! Pages of experiments with metrics, on their way to the log, and when their values are complete.

use std::sync::Arc;

use crate::Engine;
use crate::cohorts::SLACK_MS;
use crate::error::EngineError;
use crate::experiment_spec::{ExperimentSpec, MetricOf, arm_of};
use crate::loaded::LoadedExperiment;
use crate::tokens::duel_token::DuelToken;
use dueling_bandits::claims::alone::Arm;
use rankduel_store::Nonce;
use rankduel_store::events::{ControlEvent, PageValues};

/// High half of the nonces of the entries that say which pages are complete. No process has it.
const COMPLETE: u64 = u64::MAX - 4;

impl LoadedExperiment {
    /// A page was issued. Its values come with feedback, or are missing. Nothing if none of them
    /// would count.
    pub fn note_issued(&self, duel: &DuelToken) {
        let page = page_of(&self.spec, duel, duel.audience.unit);
        if let Some(page) = page.filter(|page| page.first != page.second) {
            self.unlogged.add_page(page);
        }
    }

    /// These values of a page came.
    pub fn note_values(&self, page: PageValues) {
        self.unlogged.add_page(page);
    }
}

/// The page of a duel without values, as it counts for metrics; `None` if no metric is about such a
/// page.
pub fn page_of(spec: &ExperimentSpec, duel: &DuelToken, unit: Option<u64>) -> Option<PageValues> {
    let &DuelToken { first, second, ticket, issued_at, nonce, audience, .. } = duel;
    let (pair, alone) = shown([first, second], ticket, arm_of(spec.alone, audience.unit))?;
    let of = if alone.is_some() { MetricOf::Page } else { MetricOf::Ranker };
    let page = PageValues::of(nonce, pair, issued_at, unit, [Vec::new(), Vec::new()]);
    spec.has_metric_of(of).then_some(PageValues { alone, ..page })
}

/// The rankers of the page of a duel, and the one that it shows alone: then the rankers are the
/// leader and the control. `None` if it shows one alone for another reason. While the control leads,
/// both arms see it, and a page of one of them has it twice.
pub(crate) fn shown(
    [first, second]: [u16; 2],
    ticket: u64,
    arm: Option<Arm>,
) -> Option<([u16; 2], Option<u16>)> {
    if first != second {
        return Some(([first, second], None));
    }
    let (arm, other) = arm.zip(DuelToken::other_arm(ticket))?;
    let pair = match arm {
        Arm::Leader => [first, other],
        Arm::Control => [other, first],
    };
    Some((pair, Some(first)))
}

impl Engine {
    /// Append the pages that this process has issued, if one of these duels is among them. The
    /// first value of a page must not come before them: of the pages that a crash loses, all would
    /// be without a value then, and the others would speak for their rankers.
    pub async fn log_issued(
        &self,
        loaded: &Arc<LoadedExperiment>,
        duels: &[Nonce],
    ) -> Result<(), EngineError> {
        let wait = || duels.iter().any(|&duel| loaded.unlogged.has_page(duel));
        if !wait() {
            return Ok(());
        }
        let _turn = loaded.unlogged.turn().await;
        // the flush that was under way may have appended them
        if wait() { self.flush_in_turn(loaded).await } else { Ok(()) }
    }

    /// Append that the values of pages are complete, if the windows of some have ended.
    pub(crate) async fn complete_values(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), EngineError> {
        if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(());
        }
        let now = self.now_ms() - SLACK_MS;
        let Some(until) = loaded.fold()?.state().guardrails.as_deref().and_then(|it| it.due(now))
        else {
            return Ok(());
        };
        let nonce = Nonce::from(COMPLETE) << 64 | Nonce::from(until.cast_unsigned());
        let event = ControlEvent::ValuesComplete { issued_before: until };
        self.append_control(loaded, nonce, event).await.map(drop)
    }
}
