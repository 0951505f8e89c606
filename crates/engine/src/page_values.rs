//! Pages of experiments with metrics that were issued and are not in the log yet. They are kept in
//! memory and appended to the log every few seconds, as self-duels are, so that issuing a duel
//! waits for no database.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Engine;
use crate::cohorts::SLACK_MS;
use crate::error::EngineError;
use crate::experiment_spec::{ExperimentSpec, MetricOf, arm_of};
use crate::loaded::LoadedExperiment;
use crate::tokens::duel_token::DuelToken;
use dueling_bandits::claims::alone::Arm;
use rankduel_store::Nonce;
use rankduel_store::events::{ControlEvent, PageValues};

/// Most pages that wait. Those that are issued while the store does not answer for long do not
/// count.
const WAITING_MAX: usize = 100_000;
/// Most pages of one entry.
const PAGES_AT_ONCE: usize = 1_000;
/// High half of the nonces of the entries that say which pages are complete. No process has it.
const COMPLETE: u64 = u64::MAX - 4;

/// The pages of one experiment.
#[derive(Debug, Default)]
pub(crate) struct WaitingPages(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// By the nonce of the duel.
    pages: BTreeMap<u128, PageValues>,
    /// An entry that may or may not be in the log. It is repeated under the same nonce until the
    /// store confirms it.
    pending: Option<(Nonce, Vec<PageValues>)>,
}

impl WaitingPages {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of a page that waits already, the first values stand.
    fn add(&self, page: PageValues) {
        let pages = &mut self.waiting().pages;
        let is_full = pages.len() >= WAITING_MAX;
        match pages.entry(page.duel.as_u128()) {
            Entry::Occupied(mut known) if known.get().values.iter().all(Vec::is_empty) => {
                known.insert(page);
            }
            Entry::Vacant(place) if !is_full => {
                place.insert(page);
            }
            _ => {}
        }
    }

    /// Whether there are pages that are not confirmed to be in the log.
    pub fn any(&self) -> bool {
        let waiting = self.waiting();
        waiting.pending.is_some() || !waiting.pages.is_empty()
    }

    /// The next entry to append, and whether there are pages for another one.
    fn to_flush(&self, nonce: impl FnOnce() -> Nonce) -> Option<(Nonce, Vec<PageValues>, bool)> {
        let mut waiting = self.waiting();
        if waiting.pending.is_none() && !waiting.pages.is_empty() {
            let rest = match waiting.pages.keys().nth(PAGES_AT_ONCE).copied() {
                Some(next) => waiting.pages.split_off(&next),
                None => BTreeMap::new(),
            };
            let pages = std::mem::replace(&mut waiting.pages, rest);
            waiting.pending = Some((nonce(), pages.into_values().collect()));
        }
        let more = !waiting.pages.is_empty();
        waiting.pending.clone().map(|(nonce, pages)| (nonce, pages, more))
    }
}

impl LoadedExperiment {
    /// A page was issued. Its values come with feedback; those that do not come count as the worst.
    /// Nothing if none of them would count.
    pub fn note_issued(&self, duel: &DuelToken) {
        let page = page_of(&self.spec, duel, duel.audience.unit);
        if let Some(page) = page.filter(|page| page.first != page.second) {
            self.waiting_pages.add(page);
        }
    }

    /// A page was issued, and these values came with it.
    pub fn note_values(&self, page: PageValues) {
        self.waiting_pages.add(page);
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
    /// Append the pages of one experiment that wait. Returns whether the log has all of them.
    pub(crate) async fn flush_pages(&self, loaded: &Arc<LoadedExperiment>) -> bool {
        let pages = &loaded.waiting_pages;
        while let Some((nonce, values, more)) = pages.to_flush(|| self.fresh_nonce()) {
            let event = ControlEvent::Values { pages: values };
            if let Err(error) = self.append_control(loaded, nonce, event).await {
                tracing::warn!(%error, experiment = loaded.name, "pages are not in the log yet");
                return false;
            }
            pages.waiting().pending.take_if(|(pending, _)| *pending == nonce);
            if !more {
                break;
            }
        }
        true
    }

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
