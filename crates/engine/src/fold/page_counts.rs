//! Counts of settled pages, by method version and pair. Part of the fold: each version of the
//! method has at most one row for each pair.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use dueling_bandits::Answer;
use interleaving::{Credit, CreditSheet, NoSignal, Team};
use rankduel_store::events::OutcomeEvent;

/// The settled pages of one pair, from the view of its lower ranker.
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
    /// Pages whose clicks earned no credit.
    pub nothing_creditable: u64,
    /// Pages made of two equal lists.
    pub not_informative: u64,
    /// Pages that showed the lower ranker on the left.
    pub lower_left: u64,
    /// Pages with a slot that can earn credit.
    pub drafted: u64,
    /// Pages on which the first such slot belongs to the lower ranker.
    pub lower_first: u64,
    /// Slots that were shown, without pinned ones.
    pub slots: u64,
    /// Slots that can earn credit.
    pub competitive: u64,
}

impl PairPages {
    /// All pages.
    pub fn pages(&self) -> u64 {
        self.wins + self.losses + self.ties + self.no_signal()
    }

    /// Pages that teach nothing.
    pub fn no_signal(&self) -> u64 {
        self.no_click + self.nothing_creditable + self.not_informative
    }

    /// Add the counts of another pair.
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

/// Counts by method version, then by pair with the lower ranker first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageCounts(BTreeMap<u32, BTreeMap<(u16, u16), PairPages>>);

impl PageCounts {
    /// The pairs of a version.
    pub fn version(&self, version: u32) -> impl Iterator<Item = (&(u16, u16), &PairPages)> {
        self.0.get(&version).into_iter().flatten()
    }

    /// The pairs of all versions.
    pub fn all(&self) -> impl Iterator<Item = (&(u16, u16), &PairPages)> {
        self.0.values().flatten()
    }

    /// Count one settled page of two different rankers.
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

    /// Whether all pairs and versions exist. Decoded counts may name others.
    pub fn is_sound(&self, rankers: usize, versions: usize) -> bool {
        self.0.iter().all(|(&version, pairs)| {
            (1..=versions).contains(&(version as usize))
                && pairs
                    .keys()
                    .all(|&(lower, higher)| lower < higher && usize::from(higher) < rankers)
        })
    }
}
