//! The units that an experiment which was a segment of another one leaves out: those that answered
//! there before the split.
//!
//! Whoever splits has seen these answers, and may split because they look good by chance. An
//! experiment that counted the same people again would count the same chance twice. So before it
//! counts its first answer, a process appends the filter of the units that are known there. Both
//! experiments hash units with the same seed. The entry has one nonce, so the log has one filter,
//! whichever process was first.
//!
//! The filter is taken once no answer to a duel that was issued before the split can come in time
//! any more. Leaving out only those who had answered by then would keep the slow ones, and winners
//! may be answered at another speed than losers. Everybody who is left is new: given all that was
//! known at the split, each answer that counts has the mean of its pair, so the experiment errs
//! with at most its own error. People who never answered are as new as they were before.
//!
//! Values of metrics count on pages that nobody answered, too. So with metrics the entry also has
//! the units that saw a page before the split, of any ranker: each page is in the log when it was
//! issued, so a unit whose values are slow is among them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Engine;
use crate::cohorts::SLACK_MS;
use crate::error::EngineError;
use crate::loaded::LoadedExperiment;
use dueling_bandits::claims::guardrails::Guardrails;
use rankduel_store::Nonce;
use rankduel_store::events::{ControlEvent, UnitHash};

/// The nonce of the entry. No process has its high half.
const KNOWN_UNITS: Nonce = (u64::MAX as Nonce - 6) << 64;

impl Engine {
    /// Append the units of the experiment that this one was a segment of, if all of them are known.
    /// Returns whether the log has them.
    pub(crate) async fn append_known_units(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<bool, EngineError> {
        let Some(from) = &loaded.spec.split_from else { return Ok(true) };
        let split_at = loaded.with_record(|record| record.created_at);
        let whole = self.registry.get(&from.experiment).await?;
        // whatever was accepted before this time is in the log that is read now
        let now = self.now_ms();
        // append the pages issued here, also those from before the split, which loaded the whole
        // again; other processes do so every few seconds, within the slack
        let draining = self.registry.still_draining().into_iter().filter(|it| it.id == whole.id);
        for issuer in draining.chain([Arc::clone(&whole)]) {
            if self.flush(&issuer).await.is_err() {
                return Ok(false);
            }
        }
        whole.catch_up(&*self.store).await?;
        if whole.is_broken() {
            return Ok(false);
        }
        let is_archived = whole.with_record(|record| record.archived_at.is_some());
        let (units, shown) = {
            let fold = whole.fold()?;
            // the oldest duel whose clicks wait to be settled
            let oldest_open = fold.open_pages().oldest_issue().unwrap_or(i64::MAX);
            let until = fold.cohorts().ended_until(now - SLACK_MS).min(oldest_open);
            if until < split_at && !is_archived {
                return Ok(false);
            }
            let mut units = fold.cohorts().known_units();
            for UnitHash(unit) in whole.spec.excluded_units() {
                units.insert(unit);
            }
            (units, fold.guardrails().map(Guardrails::shown_units))
        };
        let (units, shown) = (units_to_text(&units), shown.as_ref().map(units_to_text));
        let event = ControlEvent::KnownUnits { units, shown };
        self.append_control(loaded, KNOWN_UNITS, event).await?;
        Ok(!loaded.is_broken() && !loaded.fold()?.awaits_units())
    }
}

fn units_to_text(units: &impl Serialize) -> String {
    let bytes = postcard::to_stdvec(units).expect("numbers and vectors of them always serialise");
    STANDARD.encode(bytes)
}

/// The units of an entry, which may not be sound; `None` if its text is not that of units.
pub(crate) fn units_from_text<T: DeserializeOwned>(text: &str) -> Option<T> {
    postcard::from_bytes(&STANDARD.decode(text).ok()?).ok()
}
