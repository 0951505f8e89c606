//! Duels of a loaded experiment: selecting them, and counting those in flight.

use std::sync::{MutexGuard, PoisonError};

use rand::RngExt as _;

use super::LoadedExperiment;
use super::shares::within_bounds;
use crate::error::EngineError;
use crate::fold::Fold;
use crate::open_duels::OpenDuels;
use crate::self_duels::Flush;
use crate::traffic::TrafficCounts;
use dueling_bandits::claims::alone::Arm;
use dueling_bandits::{InFlight, PolicyRng, Selection};
use rankduel_store::Nonce;

/// A selected duel.
#[derive(Debug, Clone, Copy)]
pub struct Selected {
    /// The selection.
    pub selection: Selection,
    /// Whether its first ranker is shown left.
    pub first_left: bool,
    /// Log position that it was selected at.
    pub chosen_at: u64,
}

impl Selected {
    /// One ranker, shown alone.
    pub fn alone(ranker: usize, chosen_at: u64) -> Self {
        Self { selection: Selection::of(ranker, ranker), first_left: true, chosen_at }
    }
}

impl LoadedExperiment {
    /// Select a duel and count it as issued.
    pub fn select(&self, rng: &mut PolicyRng, now_ms: i64) -> Result<Selected, EngineError> {
        if self.spec.shares.is_empty() {
            return self.select_with(Fold::select, rng, now_ms);
        }
        let bounds: Vec<_> = self.spec.active_shares().collect();
        let select = |fold: &Fold, in_flight: &InFlight, rng: &mut PolicyRng| {
            let selection = fold.select(in_flight, rng);
            within_bounds(selection, &bounds, fold.roster().active(), rng)
        };
        self.select_with(select, rng, now_ms)
    }

    /// [`LoadedExperiment::select`] by the policy alone, without the claims.
    pub fn select_by_policy(
        &self,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Selected, EngineError> {
        self.select_with(|fold, in_flight, rng| fold.policy().select(in_flight, rng), rng, now_ms)
    }

    fn select_with(
        &self,
        select: impl FnOnce(&Fold, &InFlight, &mut PolicyRng) -> Selection,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Selected, EngineError> {
        let fold = self.fold()?;
        let policy = fold.policy();
        let (selection, mut open) = if policy.uses_in_flight() {
            let mut open = self.open_duels();
            (select(&fold, open.at(now_ms, policy.batch()), rng), open)
        } else {
            // selecting can take long, and does not need the lock
            (select(&fold, &InFlight::new(), rng), self.open_duels())
        };
        let selected = Selected { selection, first_left: rng.random(), chosen_at: fold.position() };
        open.at(now_ms, policy.batch());
        open.issue(&selection, selected.first_left, now_ms);
        Ok(selected)
    }

    /// The page of a unit that sees one ranker alone, which is noted. `winner` is that of a concluded
    /// experiment.
    pub fn select_alone(
        &self,
        unit: u64,
        arm: Arm,
        winner: Option<usize>,
    ) -> Result<Option<Selected>, EngineError> {
        let fold = self.fold()?;
        let leader = || {
            let verdict = fold.verdict().verdict().map(|verdict| verdict.winner());
            winner.or(verdict).unwrap_or_else(|| fold.policy().champion())
        };
        let ranker = match arm {
            Arm::Leader => Some(leader()),
            Arm::Control => self.spec.active_control(),
        };
        let Some(ranker) = ranker else { return Ok(None) };
        if fold.alone().is_some_and(|alone| !alone.has_issued(unit)) {
            self.self_duels.shown_alone(unit);
        }
        Ok(Some(Selected::alone(ranker, fold.position())))
    }

    /// Now and then, a duel of the canary, which is counted as issued.
    pub fn select_canary(
        &self,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Option<Selected>, EngineError> {
        let share = self.spec.pages.canary_share;
        if share == 0.0 || !rng.random_bool(share) {
            return Ok(None);
        }
        let Some([ranker, twin]) = self.spec.canary() else { return Ok(None) };
        if self.spec.is_retired(ranker) {
            return Ok(None);
        }
        let fold = self.fold()?;
        let (selection, chosen_at) = (Selection::of(ranker, twin), fold.position());
        let selected = Selected { selection, first_left: rng.random(), chosen_at };
        let mut open = self.open_duels();
        open.at(now_ms, fold.policy().batch());
        open.issue(&selection, selected.first_left, now_ms);
        Ok(Some(selected))
    }

    /// Now and then, a duel of the winner of a concluded experiment with the rival that it has met
    /// most often, which is counted as issued. It shows whether the verdict is still true.
    pub fn select_watch(
        &self,
        winner: usize,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Option<Selected>, EngineError> {
        let share = self.spec.watch;
        if share == 0.0 || !rng.random_bool(share) {
            return Ok(None);
        }
        let fold = self.fold()?;
        // on another ranker than the verdict's, there is nothing to watch
        if fold.verdict().verdict().is_none_or(|verdict| verdict.winner() != winner) {
            return Ok(None);
        }
        let tally = fold.policy().tally();
        let rivals = fold.roster().active().iter().filter(|&&rival| rival != winner);
        // of equal ones the first
        let Some(&rival) = rivals.rev().max_by_key(|&&rival| tally.half_plays(winner, rival))
        else {
            return Ok(None);
        };
        let selection = Selection::of(winner, rival);
        let selected = Selected { selection, first_left: rng.random(), chosen_at: fold.position() };
        let mut open = self.open_duels();
        open.at(now_ms, fold.policy().batch());
        open.issue(&selection, selected.first_left, now_ms);
        Ok(Some(selected))
    }

    /// Read the duels of this process that are in flight.
    pub fn in_flight<T>(
        &self,
        now_ms: i64,
        read: impl FnOnce(&InFlight) -> T,
    ) -> Result<T, EngineError> {
        let batch = self.fold()?.policy().batch();
        Ok(read(self.open_duels().at(now_ms, batch)))
    }

    /// Whether comparisons of its open batch are in flight. Evicting it would forget them.
    pub fn waits_for_its_batch(&self, now_ms: i64) -> bool {
        let batch = match self.fold() {
            Ok(fold) if fold.policy().batches().is_some() => fold.policy().batch(),
            _ => return false,
        };
        self.open_duels().at(now_ms, batch).total() > 0
    }

    pub(crate) fn open_duels(&self) -> MutexGuard<'_, OpenDuels> {
        // a panic can only make these counts inexact, and no state depends on them
        self.open_duels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Traffic of this process until now.
    pub fn traffic_counts(&self, now_ms: i64) -> TrafficCounts {
        self.traffic.counts(&mut self.open_duels(), now_ms)
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
