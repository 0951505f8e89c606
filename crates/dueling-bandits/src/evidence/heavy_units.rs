//! The units that answer most, in a fixed amount of memory, and whether they can be people.
//!
//! The counts are those of Metwally, Agrawal and El Abbadi ("Efficient computation of frequent and
//! top-k elements in data streams", 2005): a new unit takes the place of the one with the fewest
//! answers, and inherits its count as a possible error.
//!
//! A coin decides for each duel which ranker is shown on the left. So whatever a person prefers,
//! the left side wins half of the duels that have a winner. A machine that always clicks the same
//! place does not know the coin. Under a fair coin
//!
//! `E = 2^(l+r) B(l + 1/2, r + 1/2) / B(1/2, 1/2)`
//!
//! is a martingale that starts at 1, for `l` wins of the left and `r` of the right side (the
//! Krichevsky-Trofimov mixture). It reaches `x` with a probability of at most `1/x`.

use std::collections::BTreeMap;

use crate::math::mixture::ln_against_fair_coin;

/// Units that are counted.
const UNITS: usize = 32;

/// The counts of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct HeavyUnit {
    /// Answers, at most.
    pub answers: u64,
    /// By how much `answers` can be too large.
    pub error: u64,
    /// Answers in which the left side won, since the unit is counted.
    pub left: u64,
    /// Answers in which the right side won.
    pub right: u64,
}

impl HeavyUnit {
    /// `ln E`: the evidence that the sides which win its duels are no fair coin.
    pub fn ln_evidence(&self) -> f64 {
        ln_against_fair_coin(0.5, self.left as f64, self.right as f64)
    }
}

/// The units that answer most.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct HeavyUnits {
    counts: BTreeMap<u64, HeavyUnit>,
    answers: u64,
}

impl HeavyUnits {
    /// A unit answered. `left_won` is `None` where neither side won.
    pub fn answered(&mut self, unit: u64, left_won: Option<bool>) {
        self.answers += 1;
        if !self.counts.contains_key(&unit) && self.counts.len() >= UNITS {
            // of equal counts the smallest unit goes: the same on every machine
            let fewest = self.counts.iter().min_by_key(|(unit, count)| (count.answers, **unit));
            if let Some((&fewest, &HeavyUnit { answers, .. })) = fewest {
                self.counts.remove(&fewest);
                self.counts.insert(unit, HeavyUnit { answers, error: answers, left: 0, right: 0 });
            }
        }
        let count = self.counts.entry(unit).or_default();
        count.answers += 1;
        match left_won {
            Some(true) => count.left += 1,
            Some(false) => count.right += 1,
            None => {}
        }
    }

    /// Answers of all units.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// The counted units, the one with most answers first.
    pub fn heaviest(&self) -> Vec<(u64, HeavyUnit)> {
        let mut units: Vec<_> = self.counts.iter().map(|(&unit, &count)| (unit, count)).collect();
        units.sort_by_key(|(unit, count)| (std::cmp::Reverse(count.answers), *unit));
        units
    }

    /// Whether decoded counts are possible.
    pub fn is_sound(&self) -> bool {
        self.counts.len() <= UNITS
            && self.counts.values().all(|count| {
                count.error <= count.answers
                    && count.answers <= self.answers
                    && count.left.saturating_add(count.right) <= count.answers - count.error
            })
    }
}
