//! Duels of a loaded experiment: selecting them, and counting those in flight.

use std::sync::{MutexGuard, PoisonError};

use rand::RngExt as _;

use super::LoadedExperiment;
use super::shares::within_bounds;
use crate::error::EngineError;
use crate::fold::Fold;
use crate::open_duels::OpenDuels;
use crate::tokens::duel_token::DuelToken;
use crate::traffic::TrafficCounts;
use dueling_bandits::claims::alone::Arm;
use dueling_bandits::{Duel, InFlight, PolicyRng, Selection};

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
    /// The time of issue of a duel that is issued now.
    pub fn issued_at(&self, now_ms: i64) -> i64 {
        // an experiment that cannot be read issues no duel
        self.fold().ok().and_then(|fold| fold.time_ahead_of(now_ms)).unwrap_or(now_ms)
    }

    /// Select a duel and count it as issued.
    pub fn select(&self, rng: &mut PolicyRng, now_ms: i64) -> Result<Selected, EngineError> {
        let bounds: Vec<_> = self.spec.active_shares().collect();
        let select = |fold: &Fold, in_flight: &InFlight, rng: &mut PolicyRng| {
            let selection = fold.select(in_flight, rng);
            let selection = self.doubted_duel(&selection, fold).unwrap_or(selection);
            match bounds.is_empty() {
                true => selection,
                false => within_bounds(selection, &bounds, fold.roster().active(), rng),
            }
        };
        self.select_with(select, rng, now_ms)
    }

    /// Set the winner and a rival whose duels would lessen a doubt about the verdict: they meet
    /// where the winner would be shown alone. `None` if there is no doubt, or duels would not help.
    pub fn set_doubted(&self, winner_and_rival: Option<(usize, usize)>) {
        *self.doubted.lock().unwrap_or_else(PoisonError::into_inner) = winner_and_rival;
    }

    /// The duel of a doubted verdict, in place of its winner alone.
    fn doubted_duel(&self, selection: &Selection, fold: &Fold) -> Option<Selection> {
        let winner = fold.verdict().verdict()?.winner();
        if selection.duel != Duel::new(winner, winner) {
            return None;
        }
        let doubted = *self.doubted.lock().unwrap_or_else(PoisonError::into_inner);
        let (doubted, rival) = doubted?;
        (doubted == winner).then(|| Selection::of(winner, rival))
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
        let (selection, open) = if policy.uses_in_flight() {
            let mut open = self.open_duels();
            (select(&fold, open.in_flight_at(now_ms, policy.batch()), rng), open)
        } else {
            // selecting can take long, and does not need the lock
            (select(&fold, &InFlight::new(), rng), self.open_duels())
        };
        Ok(issue(&fold, open, selection, rng, now_ms))
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
            let verdict = fold.verdict().winner();
            winner.or(verdict).unwrap_or_else(|| fold.policy().champion())
        };
        let Some(control) = self.spec.active_control() else { return Ok(None) };
        let (ranker, other) = match arm {
            Arm::Leader => (leader(), control),
            Arm::Control => (control, leader()),
        };
        if fold.alone().is_some_and(|alone| !alone.has_issued(unit)) {
            self.unlogged.shown_alone(unit);
        }
        let mut selected = Selected::alone(ranker, fold.position());
        selected.selection.ticket = DuelToken::ticket_alone(other);
        Ok(Some(selected))
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
        let (fold, open) = (self.fold()?, self.open_duels());
        Ok(Some(issue(&fold, open, Selection::of(ranker, twin), rng, now_ms)))
    }

    /// Now and then, a duel of the winner of a concluded experiment, which is counted as issued:
    /// with the rival of a segment that is not settled, or else with the control, or without one
    /// with the rival that it has met most often. It shows whether the verdict is still true.
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
        let of_segment = fold.segments().and_then(|segments| segments.select(winner, rng));
        let control = fold.claims().and_then(|claims| claims.control());
        let tally = fold.policy().tally();
        let rivals = fold.roster().active().iter().filter(|&&rival| rival != winner);
        // of equal ones the first
        let most_met = rivals.rev().max_by_key(|&&rival| tally.half_plays(winner, rival)).copied();
        let rival = control.filter(|&control| control != winner).or(most_met);
        let Some(selection) = of_segment.or(rival.map(|rival| Selection::of(winner, rival))) else {
            return Ok(None);
        };
        Ok(Some(issue(&fold, self.open_duels(), selection, rng, now_ms)))
    }

    /// Read the duels of this process that are in flight.
    pub fn in_flight<T>(
        &self,
        now_ms: i64,
        read: impl FnOnce(&InFlight) -> T,
    ) -> Result<T, EngineError> {
        let batch = self.fold()?.policy().batch();
        Ok(read(self.open_duels().in_flight_at(now_ms, batch)))
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
        self.unlogged.count_self_duel(ranker);
    }
}

/// Toss for the sides of a selection, and count it as issued.
fn issue(
    fold: &Fold,
    mut open: MutexGuard<'_, OpenDuels>,
    selection: Selection,
    rng: &mut PolicyRng,
    now_ms: i64,
) -> Selected {
    let selected = Selected { selection, first_left: rng.random(), chosen_at: fold.position() };
    // the batch that the duel is counted for
    open.in_flight_at(now_ms, fold.policy().batch());
    open.issue(&selection, selected.first_left, now_ms);
    selected
}
