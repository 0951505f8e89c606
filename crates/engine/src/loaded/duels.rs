//! Duels of a loaded experiment: choosing them, and counting those in flight.

use std::sync::{MutexGuard, PoisonError};

use rand::RngExt as _;

use super::LoadedExperiment;
use crate::choose::{Choice, Chooser, Rule};
use crate::error::EngineError;
use crate::experiment_spec::WHOLE_COVERAGE;
use crate::fold::Fold;
use crate::open_duels::OpenDuels;
use crate::tokens::duel_token::DuelToken;
use crate::traffic::TrafficCounts;
use dueling_bandits::{InFlight, PolicyRng, Selection};
use rankduel_store::events::Status;

/// The rankers of a page.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    /// The rule that chose them.
    pub rule: Rule,
    /// The rankers, with what the policy notes of its selection.
    pub selection: Selection,
    /// Whether the first ranker is shown left.
    pub first_left: bool,
    /// Log position of the state that chose them.
    pub chosen_at: u64,
}

impl LoadedExperiment {
    /// The issue time to write into a duel that is created at `now_ms`. It is later than `now_ms`
    /// if a clock was ahead earlier ([`Fold::time_ahead_of`]).
    pub fn issued_at(&self, now_ms: i64) -> i64 {
        // an experiment that cannot be read issues no duel
        self.fold().ok().and_then(|fold| fold.time_ahead_of(now_ms)).unwrap_or(now_ms)
    }

    /// Set the pair (winner, rival) to compare because the verdict is in doubt. This pair is issued
    /// for pages on which the policy would show the winner alone. `None`: there is no doubt, or
    /// more duels would not help.
    pub fn set_doubted(&self, winner_and_rival: Option<(usize, usize)>) {
        *self.doubted.lock().unwrap_or_else(PoisonError::into_inner) = winner_and_rival;
    }

    /// Choose the rankers of a page of this unit, and count the page as issued.
    pub fn choose(
        &self,
        unit: Option<u64>,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Chosen, EngineError> {
        let fold = self.fold()?;
        let home = unit.and_then(|unit| fold.home(unit).copied());
        let chooser = Chooser {
            spec: &self.spec,
            fold: &fold,
            home,
            concluded_on: self.concluded_on(),
            doubted: *self.doubted.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let mut open = None;
        let mut choice = chooser.choose(unit, rng, |rng| {
            let (selection, locked) = self.select_by_policy(&fold, rng, now_ms);
            open = Some(locked);
            selection
        });
        if let Some(unit) = unit.filter(|&unit| choice.may_be_home() && fold.may_choose_home(unit))
        {
            let at = fold.time_ahead_of(now_ms).unwrap_or(now_ms);
            let home = choice.as_home(at, fold.state().position);
            let known = self.unlogged.choose_home(unit, home);
            match known == home {
                true => choice.selection.ticket = DuelToken::ticket_of_home(home.ticket),
                // the page before this one is not in the log yet
                false => choice = Choice::of_home(known),
            }
        }
        let Choice { rule, selection } = choice;
        let ranker = selection.duel.first;
        if self.spec.coverage < WHOLE_COVERAGE {
            self.issued.traffic.enrolled(rule != Rule::Outside);
        }
        match (rule, unit) {
            (Rule::Alone(_), Some(unit)) => {
                if fold.state().alone.as_deref().is_some_and(|alone| !alone.has_issued(unit)) {
                    self.unlogged.shown_alone(unit);
                }
            }
            (Rule::Outside, _) | (Rule::Alone(_), None) => {}
            (Rule::Winner, _) => self.unlogged.count_self_duel(ranker),
            (
                Rule::Watch | Rule::Home | Rule::Canary | Rule::Claim | Rule::Doubt | Rule::Policy,
                _,
            ) => {
                let open = open.unwrap_or_else(|| self.open_duels());
                let chosen = issue(&fold, open, rule, selection, rng, now_ms);
                if selection.duel.is_self() {
                    self.unlogged.count_self_duel(ranker);
                }
                return Ok(chosen);
            }
        }
        Ok(Chosen { rule, selection, first_left: true, chosen_at: fold.state().position })
    }

    /// The duel that the policy selects, for a lease of its batch. It is counted as issued.
    pub fn choose_for_lease(
        &self,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> Result<Chosen, EngineError> {
        let fold = self.fold()?;
        let (selection, open) = self.select_by_policy(&fold, rng, now_ms);
        Ok(issue(&fold, open, Rule::Policy, selection, rng, now_ms))
    }

    /// The ranker that a concluded experiment shows; `None` if it was enlisted after this experiment
    /// was loaded, which has no data about it.
    fn concluded_on(&self) -> Option<usize> {
        let (status, winner) = self.with_record(|record| (record.status, record.winner));
        let winner = winner.filter(|_| status == Status::Concluded).map(usize::from);
        winner.filter(|&winner| winner < self.spec.rankers.len())
    }

    fn select_by_policy(
        &self,
        fold: &Fold,
        rng: &mut PolicyRng,
        now_ms: i64,
    ) -> (Selection, MutexGuard<'_, OpenDuels>) {
        let policy = fold.run().policy();
        // most pages have no order: a duel in flight is no answer to come
        if policy.uses_in_flight() && self.spec.decide_by.is_none() {
            let mut open = self.open_duels();
            let in_flight = open.in_flight_at(now_ms, policy.batch());
            return (policy.select(in_flight, rng), open);
        }
        // selecting can take long, and does not need the lock
        let selection = policy.select(&InFlight::new(), rng);
        (selection, self.open_duels())
    }

    /// Read the duels of this process that are in flight.
    pub fn in_flight<T>(
        &self,
        now_ms: i64,
        read: impl FnOnce(&InFlight) -> T,
    ) -> Result<T, EngineError> {
        let batch = self.fold()?.run().policy().batch();
        Ok(read(self.open_duels().in_flight_at(now_ms, batch)))
    }

    pub(crate) fn open_duels(&self) -> MutexGuard<'_, OpenDuels> {
        // a panic can only make these counts inexact, and no state depends on them
        self.issued.open_duels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Traffic of this process until now.
    pub fn traffic_counts(&self, now_ms: i64) -> TrafficCounts {
        self.issued.traffic.counts(&mut self.open_duels(), now_ms)
    }
}

/// Toss for the sides of a selection, and count it as issued.
fn issue(
    fold: &Fold,
    mut open: MutexGuard<'_, OpenDuels>,
    rule: Rule,
    selection: Selection,
    rng: &mut PolicyRng,
    now_ms: i64,
) -> Chosen {
    let chosen =
        Chosen { rule, selection, first_left: rng.random(), chosen_at: fold.state().position };
    // the batch that the duel is counted for
    open.in_flight_at(now_ms, fold.run().policy().batch());
    open.issue(&selection, chosen.first_left, now_ms);
    chosen
}
