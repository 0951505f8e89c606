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
    /// A page was issued. Its values come with feedback; those that do not come count as the worst.
    /// Nothing if none of them would count.
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
/// page. While the control leads, both arms see it, and a page of one of them has it twice.
pub fn page_of(spec: &ExperimentSpec, duel: &DuelToken, unit: Option<u64>) -> Option<PageValues> {
    let &DuelToken { first, second, issued_at, nonce, audience, .. } = duel;
    let page = |pair| PageValues::of(nonce, pair, issued_at, unit, [Vec::new(), Vec::new()]);
    if first != second {
        return spec.has_metric_of(MetricOf::Ranker).then(|| page([first, second]));
    }
    let (arm, other) = arm_of(spec.alone, audience.unit).zip(duel.other_arm())?;
    let pair = match arm {
        Arm::Leader => [first, other],
        Arm::Control => [other, first],
    };
    let alone = PageValues { alone: Some(first), ..page(pair) };
    spec.has_metric_of(MetricOf::Page).then_some(alone)
}

impl Engine {
    /// Append that the values of pages are complete, if the windows of some have ended.
    pub(crate) async fn complete_values(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), EngineError> {
        if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
            return Ok(());
        }
        // the first page must not count before it is known which ones never do
        if loaded.fold()?.awaits_units() {
            return Ok(());
        }
        let now = self.now_ms() - SLACK_MS;
        let Some(until) = loaded.fold()?.guardrails().and_then(|it| it.due(now)) else {
            return Ok(());
        };
        let nonce = Nonce::from(COMPLETE) << 64 | Nonce::from(until.cast_unsigned());
        let event = ControlEvent::ValuesComplete { issued_before: until };
        self.append_control(loaded, nonce, event).await.map(drop)
    }
}
