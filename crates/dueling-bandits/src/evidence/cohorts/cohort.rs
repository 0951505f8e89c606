//! The answers of one cohort: counts of answers without a unit, and one answer of each unit.

use std::collections::BTreeMap;

use crate::evidence::cohorts::admission::{EqualAnswers, TimedAnswer};
use crate::evidence::scores::{CODES, Score};
use crate::rng::mix;
use crate::{Duel, Outcome};

/// Most units, and most pairs of answers without a unit, that one cohort keeps.
const UNITS_MAX: usize = 2048;
const PAIRS_MAX: usize = 4096;
/// Bytes that a map takes for each entry beside the entry itself, about.
pub(super) const MAP_BYTES: usize = 16;
/// Number of codes of outcomes.
const OUTCOMES: u8 = 3;
/// Codes of scores follow those of outcomes.
const SCORES_FROM: u8 = 2 * OUTCOMES;

#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Cohort {
    /// First wins, second wins and halves of ordered pairs, of answers without a unit.
    pub(super) pairs: BTreeMap<(u16, u16), [u32; 3]>,
    /// Answers by the mixed hash of their unit.
    pub(super) units: BTreeMap<u64, UnitAnswer>,
    /// Other answers without a unit: those that count by their score, and those of a segment. By
    /// ordered pair, segment, and a code as in [`UnitAnswer`].
    pub(super) others: BTreeMap<(u16, u16, u8, u8), u32>,
}

/// The answer of a unit that waits.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct UnitAnswer {
    pub(super) unit: u64,
    issued_at: i64,
    nonce: u128,
    first: u16,
    second: u16,
    /// 0: first, 1: second, 2: half. 3 more if the answer is expected not to count. An answer with
    /// a score has 6, and twice the code of the score, and 1 more if it is expected not to count.
    pub(super) code: u8,
    pub(super) segment: u8,
}

impl UnitAnswer {
    /// An answer that is expected to count.
    pub(super) fn new(unit: u64, answer: &TimedAnswer, code: u8) -> Self {
        let &TimedAnswer { duel, issued_at, nonce, segment, .. } = answer;
        let (first, second) = (duel.first as u16, duel.second as u16);
        Self { unit, issued_at, nonce, first, second, code, segment }
    }

    /// The answer without its unit.
    pub(super) fn anonymous(&self) -> EqualAnswers {
        let duel = Duel::new(self.first.into(), self.second.into());
        decoded(duel, self.code, self.segment, 1)
    }

    /// Whether it is expected to count: no answer of its unit waits in an earlier cohort.
    pub(super) fn is_expected(&self) -> bool {
        match self.code.checked_sub(SCORES_FROM) {
            Some(code) => code % 2 == 0,
            None => self.code < OUTCOMES,
        }
    }

    /// Sets whether it is expected to count.
    pub(super) fn set_expected(&mut self, expected: bool) {
        let unexpected = u8::from(!expected);
        self.code = match self.code.checked_sub(SCORES_FROM) {
            Some(code) => SCORES_FROM + code / 2 * 2 + unexpected,
            None => self.code % OUTCOMES + unexpected * OUTCOMES,
        };
    }

    fn is_sound(&self, key: u64, rankers: usize) -> bool {
        key == mix(self.unit)
            && self.first != self.second
            && usize::from(self.first.max(self.second)) < rankers
            && self.code < SCORES_FROM + 2 * CODES
    }
}

/// Where a unit's answer went.
pub(super) enum UnitPlace {
    /// It has a place of its own. In a full cohort another unit lost its place.
    New { displaced: Option<UnitAnswer> },
    /// It has the place of a later answer of its unit.
    Replaces(UnitAnswer),
    /// It has none: an answer of its unit that was issued earlier has it.
    Taken,
    /// It has none in a full cohort.
    Full,
}

impl Cohort {
    pub(super) fn answers(&self) -> u64 {
        let anonymous = self.pairs.values().flatten().map(|&count| u64::from(count));
        let others = self.others.values().map(|&count| u64::from(count));
        anonymous.sum::<u64>() + others.sum::<u64>() + self.units.len() as u64
    }

    /// The answers that are expected to count, by ordered pair and by a code as in [`UnitAnswer`].
    pub(super) fn expected(&self) -> impl Iterator<Item = ((u16, u16, u8), u32)> + '_ {
        let outcomes = self.pairs.iter().flat_map(|(&(first, second), counts)| {
            (0..OUTCOMES).zip(counts).map(move |(code, &count)| ((first, second, code), count))
        });
        let others = self.others.iter();
        let others =
            others.map(|(&(first, second, _, code), &count)| ((first, second, code), count));
        let units = self.units.values().filter(|answer| answer.is_expected());
        let units = units.map(|answer| ((answer.first, answer.second, answer.code), 1));
        outcomes.chain(others).chain(units).filter(|&(_, count)| count > 0)
    }

    pub(super) fn bytes(&self) -> usize {
        let pair = size_of::<((u16, u16), [u32; 3])>() + MAP_BYTES;
        let unit = size_of::<(u64, UnitAnswer)>() + MAP_BYTES;
        let other = size_of::<((u16, u16, u8, u8), u32)>() + MAP_BYTES;
        let maps = pair * self.pairs.len() + unit * self.units.len() + other * self.others.len();
        size_of::<Self>() + MAP_BYTES + maps
    }

    /// Count an answer without a unit. A full cohort keeps the pairs with the smallest hash, so
    /// neither outcomes nor the order of arrival decide what it leaves out. Returns the answers of
    /// the pair that lost its place; `None` if this pair has no place.
    pub(super) fn count(&mut self, duel: Duel, code: u8, segment: u8) -> Option<Vec<EqualAnswers>> {
        let pair = (duel.first as u16, duel.second as u16);
        let mut displaced = Vec::new();
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&pair) {
            let last = self.pairs.keys().copied().max_by_key(|&pair| hash_of(pair))?;
            if hash_of(last) < hash_of(pair) {
                return None;
            }
            displaced = self.take_pair(last);
        }
        let outcomes = self.pairs.entry(pair).or_default();
        let count = match outcomes.get_mut(usize::from(code)) {
            Some(count) if segment == 0 => count,
            _ => self.others.entry((pair.0, pair.1, segment, code)).or_default(),
        };
        *count = count.saturating_add(1);
        Some(displaced)
    }

    /// The answers of a pair without a unit. They do not wait any more.
    fn take_pair(&mut self, pair: (u16, u16)) -> Vec<EqualAnswers> {
        let duel = Duel::new(pair.0.into(), pair.1.into());
        let outcomes = self.pairs.remove(&pair).unwrap_or_default();
        let outcomes = (0..OUTCOMES).zip(outcomes).filter(|&(_, count)| count > 0);
        let mut answers: Vec<EqualAnswers> =
            outcomes.map(|(code, count)| decoded(duel, code, 0, count)).collect();
        let all = (pair.0, pair.1, 0, 0)..=(pair.0, pair.1, u8::MAX, u8::MAX);
        let others: Vec<_> = self.others.range(all).map(|(&key, &count)| (key, count)).collect();
        for (key, count) in others {
            self.others.remove(&key);
            let (_, _, segment, code) = key;
            answers.push(decoded(duel, code, segment, count));
        }
        answers
    }

    /// All answers without a unit, by pair. They do not wait any more.
    pub(super) fn take_pairs(&mut self) -> Vec<EqualAnswers> {
        let pairs: Vec<_> = self.pairs.keys().copied().collect();
        pairs.into_iter().flat_map(|pair| self.take_pair(pair)).collect()
    }

    /// Keep the answer of a unit that was issued first, and the units with the smallest hash. An
    /// answer that replaces another one is expected to count if that one was.
    pub(super) fn put(&mut self, key: u64, mut answer: UnitAnswer) -> UnitPlace {
        if let Some(known) = self.units.get_mut(&key) {
            if (known.issued_at, known.nonce) <= (answer.issued_at, answer.nonce) {
                return UnitPlace::Taken;
            }
            answer.set_expected(known.is_expected());
            return UnitPlace::Replaces(std::mem::replace(known, answer));
        }
        let full = self.units.len() >= UNITS_MAX;
        if full && self.units.last_key_value().is_some_and(|(&largest, _)| largest < key) {
            return UnitPlace::Full;
        }
        let displaced = if full { self.units.pop_last() } else { None };
        self.units.insert(key, answer);
        UnitPlace::New { displaced: displaced.map(|(_, answer)| answer) }
    }

    /// Whether a decoded cohort fits this many rankers.
    pub(super) fn is_sound(&self, rankers: usize) -> bool {
        let pair = |&(first, second): &(u16, u16)| {
            first != second && usize::from(first.max(second)) < rankers
        };
        self.pairs.keys().all(pair)
            && self.units.iter().all(|(&key, answer)| answer.is_sound(key, rankers))
            && self.others.keys().all(|&(first, second, _, code)| {
                self.pairs.contains_key(&(first, second)) && code < SCORES_FROM + 2 * CODES
            })
    }
}

/// The order in which a full cohort keeps pairs.
fn hash_of((first, second): (u16, u16)) -> u64 {
    mix(u64::from(first) << 16 | u64::from(second))
}

/// The code as in [`UnitAnswer`] of an answer that is expected to count; `None` if it decides
/// nothing.
pub(super) fn code_of(answer: &TimedAnswer) -> Option<u8> {
    match (answer.score, answer.outcome) {
        (Some(score), _) => Some(SCORES_FROM + 2 * score.code()),
        (None, Outcome::First) => Some(0),
        (None, Outcome::Second) => Some(1),
        (None, Outcome::Half) => Some(2),
        (None, Outcome::Void | Outcome::None) => None,
    }
}

/// Answers with a code as in [`UnitAnswer`].
pub(super) fn decoded(duel: Duel, code: u8, segment: u8, count: u32) -> EqualAnswers {
    let (outcome, score) = match code.checked_sub(SCORES_FROM) {
        Some(code) => {
            let score = Score::of_code(code / 2);
            (score.outcome(), Some(score))
        }
        None => {
            ([Outcome::First, Outcome::Second, Outcome::Half][usize::from(code % OUTCOMES)], None)
        }
    };
    EqualAnswers { duel, outcome, score, segment, count }
}
