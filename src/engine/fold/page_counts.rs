//! What pages came to, counted by method and pair. Part of the fold: at most as many rows as there
//! are pairs with pages, for each version of the method.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::events::OutcomeEvent;
use dueling_bandits::Answer;
use interleaving::{Credit, CreditSheet, NoSignal, Team};

/// The settled pages of one pair, seen from its lower ranker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PairPages {
    /// Pages that the lower ranker won.
    pub wins: u64,
    /// Pages that the higher ranker won.
    pub losses: u64,
    /// Pages with equal credit.
    pub ties: u64,
    /// Pages without a click.
    pub no_click: u64,
    /// Pages whose clicks earned nobody anything.
    pub nothing_creditable: u64,
    /// Pages on which both lists were the same.
    pub not_informative: u64,
    /// Pages that showed the lower ranker left.
    pub lower_left: u64,
    /// Pages with a slot that can earn credit.
    pub drafted: u64,
    /// Pages on which the first such slot is the lower ranker's.
    pub lower_first: u64,
    /// Slots that were shown, pinned ones apart.
    pub slots: u64,
    /// Slots that can earn credit.
    pub competitive: u64,
}

impl PairPages {
    /// All of them.
    pub fn pages(&self) -> u64 {
        self.wins + self.losses + self.ties + self.no_signal()
    }

    /// Those that said nothing.
    pub fn no_signal(&self) -> u64 {
        self.no_click + self.nothing_creditable + self.not_informative
    }

    /// Add what is counted of another.
    pub fn add(&mut self, other: &Self) {
        self.wins += other.wins;
        self.losses += other.losses;
        self.ties += other.ties;
        self.no_click += other.no_click;
        self.nothing_creditable += other.nothing_creditable;
        self.not_informative += other.not_informative;
        self.lower_left += other.lower_left;
        self.drafted += other.drafted;
        self.lower_first += other.lower_first;
        self.slots += other.slots;
        self.competitive += other.competitive;
    }
}

/// By version of the method and by pair, its lower ranker first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageCounts(BTreeMap<u32, BTreeMap<(u16, u16), PairPages>>);

impl PageCounts {
    /// The pairs of a version.
    pub fn version(&self, version: u32) -> impl Iterator<Item = (&(u16, u16), &PairPages)> {
        self.0.get(&version).into_iter().flatten()
    }

    /// One settled page, of two different rankers.
    pub fn record(
        &mut self,
        version: u32,
        outcome: &OutcomeEvent,
        sheet: &CreditSheet,
        credit: &Credit,
    ) {
        let (lower, higher) =
            (outcome.first.min(outcome.second), outcome.first.max(outcome.second));
        let lower_is_first = lower == outcome.first;
        let lower_is_left = lower_is_first == outcome.first_left;
        let row = self.0.entry(version).or_default().entry((lower, higher)).or_default();
        *match (outcome.answer, credit.no_signal) {
            (Answer::First, _) if lower_is_first => &mut row.wins,
            (Answer::Second, _) if !lower_is_first => &mut row.wins,
            (Answer::First | Answer::Second, _) => &mut row.losses,
            (Answer::Tie, _) => &mut row.ties,
            (Answer::None, Some(NoSignal::NotInformative)) => &mut row.not_informative,
            (Answer::None, Some(NoSignal::NothingCreditable)) => &mut row.nothing_creditable,
            (Answer::None, _) => &mut row.no_click,
        } += 1;
        row.lower_left += u64::from(lower_is_left);
        let competitive = sheet.slots.iter().filter(|slot| slot.competitive);
        if let Some(first) = competitive.clone().find(|slot| slot.team != Some(Team::Both)) {
            row.drafted += 1;
            row.lower_first += u64::from((first.team == Some(Team::Left)) == lower_is_left);
        }
        row.slots += sheet.slots.iter().filter(|slot| slot.team.is_some()).count() as u64;
        row.competitive += competitive.count() as u64;
    }

    /// Whether every pair is one of `rankers`, and every version one of `versions`; a decoded one
    /// may not be.
    pub fn is_sound(&self, rankers: usize, versions: usize) -> bool {
        self.0.iter().all(|(&version, pairs)| {
            (1..=versions).contains(&(version as usize))
                && pairs
                    .keys()
                    .all(|&(lower, higher)| lower < higher && usize::from(higher) < rankers)
        })
    }
}
