//! Duels of a loaded experiment: selecting them, and counting the open ones.

use std::sync::{MutexGuard, PoisonError};

use rand::RngExt as _;

use super::LoadedExperiment;
use crate::error::EngineError;
use crate::outstanding::Outstanding;
use crate::self_duels::Flush;
use dueling_bandits::{InFlight, PolicyRng, Selection};
use rankduel_store::Nonce;

impl LoadedExperiment {
    /// Select a duel and count it as open. Returns the log position that it was selected at.
    pub fn select(
        &self,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<(Selection, u64), EngineError> {
        let fold = self.fold()?;
        let policy = fold.policy();
        let selection = if policy.uses_in_flight() {
            let mut outstanding = self.lock_outstanding();
            let selection = policy.select(outstanding.at(now_ms, policy.batch()), rng);
            outstanding.issue(&selection, now_ms);
            selection
        } else {
            // selecting can take long, and does not need the lock
            let selection = policy.select(&InFlight::new(), rng);
            let mut outstanding = self.lock_outstanding();
            outstanding.at(now_ms, policy.batch());
            outstanding.issue(&selection, now_ms);
            selection
        };
        Ok((selection, fold.position()))
    }

    /// Now and then, a duel of the canary, which is counted as open. Returns the log position too.
    pub fn select_canary(
        &self,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Option<(Selection, u64)>, EngineError> {
        let share = self.spec.pages.canary_share;
        if share == 0.0 || !rng.random_bool(share) {
            return Ok(None);
        }
        let Some([ranker, twin]) = self.spec.canary() else { return Ok(None) };
        if self.spec.is_retired(ranker) {
            return Ok(None);
        }
        let fold = self.fold()?;
        let selection = Selection::of(ranker, twin);
        let mut outstanding = self.lock_outstanding();
        outstanding.at(now_ms, fold.policy().batch());
        outstanding.issue(&selection, now_ms);
        Ok(Some((selection, fold.position())))
    }

    /// Read the open duels of this process.
    pub fn outstanding<T>(
        &self,
        now_ms: i64,
        read: impl FnOnce(&InFlight) -> T,
    ) -> Result<T, EngineError> {
        let batch = self.fold()?.policy().batch();
        let mut outstanding = self.lock_outstanding();
        Ok(read(outstanding.at(now_ms, batch)))
    }

    /// Whether comparisons of its open batch are in flight. Evicting it would forget them.
    pub fn waits_for_its_batch(&self, now_ms: i64) -> bool {
        let batch = match self.fold() {
            Ok(fold) if fold.policy().batches().is_some() => fold.policy().batch(),
            _ => return false,
        };
        self.lock_outstanding().at(now_ms, batch).total() > 0
    }

    pub(crate) fn lock_outstanding(&self) -> MutexGuard<'_, Outstanding> {
        // a panic can only make these counts inexact, and no state depends on them
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Count a self-duel that was issued.
    pub fn count_self_duel(&self, ranker: usize) {
        self.self_duels.count(ranker);
    }

    /// Whether there are self-duels that are not confirmed to be in the log.
    pub fn has_self_duels(&self) -> bool {
        self.self_duels.any()
    }

    /// Self-duels to append now. They stay pending until [`LoadedExperiment::self_duels_flushed`].
    pub fn self_duels_to_flush(&self, fresh_nonce: impl FnOnce() -> Nonce) -> Option<Flush> {
        self.self_duels.to_flush(fresh_nonce)
    }

    /// The flush with this nonce is in the log.
    pub fn self_duels_flushed(&self, nonce: Nonce) {
        self.self_duels.flushed(nonce);
    }
}
