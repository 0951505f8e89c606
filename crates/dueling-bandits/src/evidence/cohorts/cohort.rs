//! The answers of one cohort: counts of answers without a unit, and one answer of each unit.

use std::collections::BTreeMap;

use crate::evidence::cohorts::admission::Reason;
use crate::evidence::seen_units::mix;
use crate::{Duel, Outcome};

/// Most units, and most pairs of answers without a unit, that one cohort keeps.
const UNITS_MAX: usize = 2048;
const PAIRS_MAX: usize = 4096;
/// Bytes that a map takes for each entry beside the entry itself, about.
pub(super) const MAP_BYTES: usize = 16;
/// Number of codes of outcomes.
const OUTCOMES: u8 = 3;

#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Cohort {
    /// First wins, second wins and halves of ordered pairs, of answers without a unit.
    pub(super) pairs: BTreeMap<(u16, u16), [u32; 3]>,
    /// Answers by the mixed hash of their unit.
    pub(super) units: BTreeMap<u64, UnitAnswer>,
}

/// The answer of a unit that waits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct UnitAnswer {
    pub(super) unit: u64,
    issued_at: i64,
    nonce: u128,
    first: u16,
    second: u16,
    /// 0: first, 1: second, 2: half. 3 more if the answer is expected not to count. Both are in
    /// one byte so that states from before answers were expected to count can be read.
    code: u8,
}

impl UnitAnswer {
    /// An answer with the code of its outcome. It is expected to count.
    pub(super) fn new(unit: u64, issued_at: i64, nonce: u128, duel: Duel, code: u8) -> Self {
        let (first, second) = (duel.first as u16, duel.second as u16);
        Self { unit, issued_at, nonce, first, second, code }
    }

    pub(super) fn duel(&self) -> Duel {
        Duel::new(self.first.into(), self.second.into())
    }

    pub(super) fn outcome(&self) -> Outcome {
        outcome_of(self.code % OUTCOMES)
    }

    /// Whether it is expected to count: no answer of its unit waits in an earlier cohort.
    pub(super) fn is_expected(&self) -> bool {
        self.code < OUTCOMES
    }

    pub(super) fn expect(&mut self, expected: bool) {
        self.code = self.code % OUTCOMES + if expected { 0 } else { OUTCOMES };
    }

    fn is_sound(&self, key: u64, rankers: usize) -> bool {
        key == mix(self.unit)
            && self.first != self.second
            && usize::from(self.first.max(self.second)) < rankers
            && self.code < 2 * OUTCOMES
    }
}

/// Where a unit's answer went.
pub(super) enum UnitPlace {
    /// It has a place of its own. In a full cohort another unit lost its place.
    New { displaced: Option<UnitAnswer> },
    /// It has the place of a later answer of its unit.
    Replaces(UnitAnswer),
    /// It has none.
    Refused(Reason),
}

impl Cohort {
    pub(super) fn answers(&self) -> u64 {
        let anonymous = self.pairs.values().flatten().map(|&count| u64::from(count));
        anonymous.sum::<u64>() + self.units.len() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        let pair = size_of::<((u16, u16), [u32; 3])>() + MAP_BYTES;
        let unit = size_of::<(u64, UnitAnswer)>() + MAP_BYTES;
        size_of::<Self>() + MAP_BYTES + pair * self.pairs.len() + unit * self.units.len()
    }

    /// The counts of a pair; `None` if the cohort is full and does not have it. A full cohort keeps
    /// the pairs that came first: which pairs are selected does not depend on answers to come.
    pub(super) fn counts_of(&mut self, duel: Duel) -> Option<&mut [u32; 3]> {
        let pair = (duel.first as u16, duel.second as u16);
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&pair) {
            return None;
        }
        Some(self.pairs.entry(pair).or_default())
    }

    /// Keep the answer of a unit that was issued first, and the units with the smallest hash. An
    /// answer that replaces another one is expected to count if that one was.
    pub(super) fn put(&mut self, key: u64, mut answer: UnitAnswer) -> UnitPlace {
        if let Some(known) = self.units.get_mut(&key) {
            if (known.issued_at, known.nonce) <= (answer.issued_at, answer.nonce) {
                return UnitPlace::Refused(Reason::RepeatedUnit);
            }
            answer.expect(known.is_expected());
            return UnitPlace::Replaces(std::mem::replace(known, answer));
        }
        let full = self.units.len() >= UNITS_MAX;
        if full && self.units.last_key_value().is_some_and(|(&largest, _)| largest < key) {
            return UnitPlace::Refused(Reason::Full);
        }
        let displaced = if full { self.units.pop_last() } else { None };
        self.units.insert(key, answer);
        UnitPlace::New { displaced: displaced.map(|(_, answer)| answer) }
    }

    /// Whether a decoded cohort fits so many rankers.
    pub(super) fn is_sound(&self, rankers: usize) -> bool {
        let pair = |&(first, second): &(u16, u16)| {
            first != second && usize::from(first.max(second)) < rankers
        };
        self.pairs.keys().all(pair)
            && self.units.iter().all(|(&key, answer)| answer.is_sound(key, rankers))
    }
}

/// The code of an outcome; `None` if it decides nothing.
pub(super) fn code_of(outcome: Outcome) -> Option<u8> {
    match outcome {
        Outcome::First => Some(0),
        Outcome::Second => Some(1),
        Outcome::Half => Some(2),
        Outcome::Void | Outcome::None => None,
    }
}

pub(super) fn outcome_of(code: u8) -> Outcome {
    match code {
        0 => Outcome::First,
        1 => Outcome::Second,
        _ => Outcome::Half,
    }
}
