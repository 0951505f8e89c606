//! The values of metrics: guardrails as a part of the state.

use super::State;
use super::apply::check_issued;
use crate::experiment_spec::{Errors, ExperimentSpec};
use crate::page_values::shown;
use dueling_bandits::claims::guardrails::{Guardrails, Page};
use rankduel_store::Nonce;
use rankduel_store::events::PageValues;

/// The guardrails before the first entry; `None` without metrics.
pub(super) fn start(spec: &ExperimentSpec, seed: u64) -> Option<Guardrails> {
    (!spec.metrics.is_empty()).then(|| {
        let (metrics, window) = (spec.guardrails(), spec.value_window_ms());
        let (rankers, control) = (spec.rankers.len(), spec.control_index());
        let error = Errors::of_metrics(spec.errors, spec.conclude_at);
        Guardrails::new(&metrics, window, error, seed, rankers, control)
    })
}

/// Those that were saved; `None` if they do not fit.
pub(super) fn restored(
    saved: Guardrails,
    spec: &ExperimentSpec,
    seed: u64,
    rankers: usize,
) -> Option<Guardrails> {
    let (metrics, window) = (spec.guardrails(), spec.value_window_ms());
    let error = Errors::of_metrics(spec.errors, spec.conclude_at);
    saved.restored(&metrics, window, error, seed, rankers)
}

impl State {
    /// Whether the log has this page and these values, or they would change nothing.
    pub(crate) fn has_page(&self, page: &PageValues) -> bool {
        let &PageValues { duel, first, second, alone, issued_at, unit, ref values } = page;
        let page = Page { issued_at, pair: [first, second], alone, unit };
        let values = values.each_ref().map(Vec::as_slice);
        self.excluded.has(unit)
            || self.guardrails.as_ref().is_some_and(|held| held.has(duel.as_u128(), &page, values))
    }

    /// An answer or a click shows that the page of a duel was issued, if nothing else in the log
    /// does.
    pub(super) fn add_answered(
        &mut self,
        nonce: Nonce,
        pair: [u16; 2],
        ticket: u64,
        issued_at: i64,
        unit: Option<u64>,
    ) {
        let shown = shown(pair, ticket, self.arm_of(unit));
        let is_excluded = self.excluded.has(unit);
        let Some(guardrails) = self.guardrails.as_mut().filter(|_| !is_excluded) else {
            return;
        };
        let shown = shown
            .filter(|(pair, alone)| pair[0] != pair[1] && guardrails.is_about(alone.is_some()));
        if let Some((pair, alone)) = shown {
            guardrails.add(nonce, Page { issued_at, pair, alone, unit }, [&[], &[]]);
        }
    }

    /// Pages with a ranker or a metric that is not known here are left out: the change that
    /// introduced it was lost.
    pub(super) fn add_values(&mut self, pages: &[PageValues]) -> Result<(), String> {
        let is_value = |value: &f64| *value >= 0.0 && value.is_finite();
        for page in pages {
            check_issued(page.issued_at)?;
            if !page.values.iter().flatten().flatten().all(is_value) {
                return Err("it has a value that is no number of a metric".into());
            }
        }
        let rankers = self.spec.rankers.len();
        let Some(guardrails) = &mut self.guardrails else { return Ok(()) };
        for page in pages {
            let &PageValues { duel, first, second, alone, issued_at, unit, ref values } = page;
            let is_known = first != second
                && alone.is_none_or(|alone| alone == first || alone == second)
                && usize::from(first.max(second)) < rankers
                && values.iter().all(|values| values.len() <= guardrails.metrics());
            if is_known && !self.excluded.has(unit) {
                let page = Page { issued_at, pair: [first, second], alone, unit };
                guardrails.add(duel.as_u128(), page, values.each_ref().map(Vec::as_slice));
            }
        }
        Ok(())
    }
}
