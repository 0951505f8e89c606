//! Which answers the verdict counts, and when: one answer of a unit, in complete cohorts.
//!
//! The evidence of a pair is a supermartingale if each counted answer has the mean of its pair,
//! given everything that was counted before it. Two things break that in production.
//!
//! - *People come back.* Answers of one user depend on each other. Of each unit (a user, a session,
//!   a device) the first answer of the whole experiment counts, and no other. One for each pair
//!   would not be enough: the policy selects the next pair after it has seen the unit's first
//!   answer.
//! - *Winners answer at another speed than losers.* Answers that are counted as they arrive are
//!   then no fair sample. Answers are therefore collected in *cohorts* by the time at which their
//!   duels were issued. A cohort is counted as a whole, once no answer of it can come any more.
//!   Cohorts are counted in the order of issue, so what is counted is always a beginning of the
//!   sequence of issued duels, and no delay decides what belongs to it.
//!
//! Time enters as a number: whoever owns the clock says up to which time of issue cohorts are
//! [complete](Cohorts::complete), and records it. The cohorts are a function of the answers and of
//! these calls; the order in which the answers of one cohort arrive changes nothing.
//!
//! Answers without a unit are counts by pair, and answers with a unit are kept one by one until
//! their cohort is complete. Both are bounded: a cohort keeps the units whose hash is smallest, and
//! the first few thousand pairs. What it leaves out does not depend on who won.

use std::collections::BTreeMap;

use crate::evidence::seen_units::{SeenUnits, mix};
use crate::{Duel, Outcome};

/// Cohorts that the window is divided into.
const COHORTS: i64 = 512;
/// Shortest cohort, in milliseconds.
const SHORTEST_MS: i64 = 1000;
/// Most units, and most pairs of answers without a unit, that one cohort keeps.
const UNITS_MAX: usize = 2048;
const PAIRS_MAX: usize = 4096;
/// Bytes that a map takes for each entry beside the entry itself, about.
const MAP_BYTES: usize = 16;

/// An answer with what decides whether it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedAnswer {
    /// The pair.
    pub duel: Duel,
    /// Its outcome.
    pub outcome: Outcome,
    /// Milliseconds at which the duel was issued.
    pub issued_at: i64,
    /// Distinguishes duels that were issued in the same millisecond.
    pub nonce: u128,
    /// Hash of the unit that answered, if the caller names units.
    pub unit: Option<u64>,
}

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It counts now.
    Counted,
    /// It counts once its cohort is complete.
    Waits,
    /// It counts once its cohort is complete, in place of another answer of its unit.
    Replaces(Duel, Outcome),
    /// It does not count.
    LeftOut(Reason),
}

/// Why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// An earlier answer of its unit counts.
    RepeatedUnit,
    /// It came after its cohort was complete.
    Late,
    /// Its cohort has as many units or pairs as it can keep.
    Full,
}

/// How many answers do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LeftOut {
    /// For [`Reason::RepeatedUnit`].
    pub repeated_unit: u64,
    /// For [`Reason::Late`].
    pub late: u64,
    /// For [`Reason::Full`].
    pub full: u64,
}

impl LeftOut {
    fn add(&mut self, reason: Reason) -> Admission {
        *match reason {
            Reason::RepeatedUnit => &mut self.repeated_unit,
            Reason::Late => &mut self.late,
            Reason::Full => &mut self.full,
        } += 1;
        Admission::LeftOut(reason)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.repeated_unit + self.late + self.full
    }
}

/// Equal answers of one pair whose cohort is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// The pair.
    pub duel: Duel,
    /// Their outcome.
    pub outcome: Outcome,
    /// How many they are.
    pub count: u32,
    /// Whether they count. Those of units that were counted meanwhile do not.
    pub counts: bool,
}

/// The answers that wait, and what was counted of whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Cohorts {
    window_ms: i64,
    saved: Saved,
}

/// What is saved of [`Cohorts`].
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Saved {
    /// Answers of duels that were issued before this time come too late.
    complete_until: i64,
    /// By the start of the cohort.
    open: BTreeMap<i64, Cohort>,
    seen: SeenUnits,
    left_out: LeftOut,
    /// Answers that count or wait, with and without a unit.
    with_unit: u64,
    without_unit: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Cohort {
    /// First wins, second wins and halves of ordered pairs, of answers without a unit.
    pairs: BTreeMap<(u16, u16), [u32; 3]>,
    /// Answers by the mixed hash of their unit.
    units: BTreeMap<u64, UnitAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct UnitAnswer {
    unit: u64,
    issued_at: i64,
    nonce: u128,
    first: u16,
    second: u16,
    /// 0: first, 1: second, 2: half.
    outcome: u8,
}

impl Cohorts {
    /// Cohorts whose answers come within `window_ms` of the issue. With 0, an answer counts as it
    /// arrives.
    pub fn new(window_ms: i64) -> Self {
        Self::restore(window_ms, Saved::default())
    }

    /// The cohorts that [`Cohorts::saved`] was taken from.
    pub fn restore(window_ms: i64, saved: Saved) -> Self {
        Self { window_ms, saved }
    }

    /// What is to be saved.
    pub fn saved(&self) -> &Saved {
        &self.saved
    }

    /// Time within which an answer counts, in milliseconds.
    pub fn window_ms(&self) -> i64 {
        self.window_ms
    }

    /// Milliseconds of issue that one cohort covers.
    pub fn width_ms(&self) -> i64 {
        (self.window_ms / COHORTS).max(SHORTEST_MS)
    }

    /// Every answer of a duel issued before this time has been counted or left out.
    pub fn complete_until(&self) -> i64 {
        self.saved.complete_until
    }

    /// How many answers wait.
    pub fn waiting(&self) -> u64 {
        self.saved.open.values().map(Cohort::answers).sum()
    }

    /// Estimated bytes in memory: half a megabyte once a unit was counted, and the answers that
    /// wait.
    pub fn bytes(&self) -> usize {
        self.saved.seen.bytes() + self.saved.open.values().map(Cohort::bytes).sum::<usize>()
    }

    /// The end of the oldest cohort that has answers.
    pub fn oldest_end(&self) -> Option<i64> {
        self.saved.open.keys().next().map(|start| start + self.width_ms())
    }

    /// How many answers do not count.
    pub fn left_out(&self) -> LeftOut {
        self.saved.left_out
    }

    /// How many units were counted.
    pub fn units(&self) -> u64 {
        self.saved.seen.inserted()
    }

    /// The probability that a new unit is taken for a known one.
    pub fn mistake_probability(&self) -> f64 {
        self.saved.seen.mistake_probability()
    }

    /// Answers that counted or wait: with a unit, and without one. Where answers count as they
    /// arrive, those without a unit are not counted here.
    pub fn answers(&self) -> (u64, u64) {
        (self.saved.with_unit, self.saved.without_unit)
    }

    /// An answer arrived. One that decides nothing ([`Outcome::Void`], [`Outcome::None`]) always
    /// counts, as a step without evidence.
    pub fn add(&mut self, answer: &TimedAnswer) -> Admission {
        let Some(outcome) = code_of(answer.outcome) else { return Admission::Counted };
        if answer.issued_at < self.saved.complete_until {
            return self.saved.left_out.add(Reason::Late);
        }
        if self.window_ms == 0 {
            return match answer.unit {
                Some(unit) if !self.saved.seen.insert(unit) => {
                    self.saved.left_out.add(Reason::RepeatedUnit)
                }
                unit => self.admitted(unit.is_some(), Admission::Counted),
            };
        }
        if answer.unit.is_some_and(|unit| self.saved.seen.contains(unit)) {
            return self.saved.left_out.add(Reason::RepeatedUnit);
        }
        let start = answer.issued_at - answer.issued_at.rem_euclid(self.width_ms());
        let cohort = self.saved.open.entry(start).or_default();
        let (first, second) = (answer.duel.first as u16, answer.duel.second as u16);
        let Some(unit) = answer.unit else {
            let full = cohort.pairs.len() >= PAIRS_MAX;
            let Some(counts) = cohort.counts_of((first, second), full) else {
                return self.saved.left_out.add(Reason::Full);
            };
            counts[usize::from(outcome)] = counts[usize::from(outcome)].saturating_add(1);
            return self.admitted(false, Admission::Waits);
        };
        let UnitPlace { replaced, refused } = cohort.put(UnitAnswer {
            unit,
            issued_at: answer.issued_at,
            nonce: answer.nonce,
            first,
            second,
            outcome,
        });
        match (replaced, refused) {
            (_, Some(reason)) => self.saved.left_out.add(reason),
            (None, None) => self.admitted(true, Admission::Waits),
            (Some((earlier, reason)), None) => {
                self.saved.left_out.add(reason);
                let duel = Duel::new(earlier.first.into(), earlier.second.into());
                Admission::Replaces(duel, outcome_of(earlier.outcome))
            }
        }
    }

    fn admitted(&mut self, with_unit: bool, admission: Admission) -> Admission {
        match with_unit {
            true => self.saved.with_unit += 1,
            // without a window, the caller counts them with the comparisons
            false if self.window_ms > 0 => self.saved.without_unit += 1,
            false => {}
        }
        admission
    }

    /// No answer of a duel issued before `until` can come any more. Returns the answers of the
    /// cohorts that end by then, cohort by cohort in the order of issue. Later answers of these
    /// cohorts are late.
    pub fn complete(&mut self, until: i64) -> Vec<Vec<Completed>> {
        let until = until - until.rem_euclid(self.width_ms());
        if until <= self.saved.complete_until {
            return Vec::new();
        }
        self.saved.complete_until = until;
        let later = self.saved.open.split_off(&until);
        let ended = std::mem::replace(&mut self.saved.open, later);
        ended.into_values().map(|cohort| self.count(cohort)).collect()
    }

    fn count(&mut self, cohort: Cohort) -> Vec<Completed> {
        let mut completed = Vec::new();
        for ((first, second), counts) in cohort.pairs {
            let duel = Duel::new(first.into(), second.into());
            for (code, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
                let outcome = outcome_of(code as u8);
                completed.push(Completed { duel, outcome, count, counts: true });
            }
        }
        for answer in cohort.units.into_values() {
            let counts = self.saved.seen.insert(answer.unit);
            if !counts {
                self.saved.with_unit -= 1;
                self.saved.left_out.add(Reason::RepeatedUnit);
            }
            let duel = Duel::new(answer.first.into(), answer.second.into());
            completed.push(Completed {
                duel,
                outcome: outcome_of(answer.outcome),
                count: 1,
                counts,
            });
        }
        completed
    }

    /// Start again at this time: what waits is dropped, and answers of duels issued before are
    /// late. The units stay known.
    pub fn restart(&mut self, at: i64) {
        self.saved.open.clear();
        (self.saved.with_unit, self.saved.without_unit) = (0, 0);
        if self.window_ms > 0 {
            // the cohort that contains this moment has duels of both sides
            let width = self.width_ms();
            let next = at - at.rem_euclid(width) + width;
            self.saved.complete_until = self.saved.complete_until.max(next);
        }
    }
}

impl Saved {
    /// Whether decoded cohorts fit so many rankers.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let pair =
            |first: u16, second: u16| first != second && usize::from(first.max(second)) < rankers;
        self.seen.is_sound()
            && self.open.iter().all(|(_, cohort)| {
                cohort.pairs.keys().all(|&(first, second)| pair(first, second))
                    && cohort.units.iter().all(|(&key, answer)| {
                        key == mix(answer.unit)
                            && pair(answer.first, answer.second)
                            && answer.outcome < 3
                    })
            })
    }
}

/// Where a unit's answer went.
#[derive(Default)]
struct UnitPlace {
    /// The answer that it replaced, and why.
    replaced: Option<(UnitAnswer, Reason)>,
    refused: Option<Reason>,
}

impl Cohort {
    fn answers(&self) -> u64 {
        let anonymous = self.pairs.values().flatten().map(|&count| u64::from(count));
        anonymous.sum::<u64>() + self.units.len() as u64
    }

    fn bytes(&self) -> usize {
        let pair = size_of::<((u16, u16), [u32; 3])>() + MAP_BYTES;
        let unit = size_of::<(u64, UnitAnswer)>() + MAP_BYTES;
        size_of::<Self>() + MAP_BYTES + pair * self.pairs.len() + unit * self.units.len()
    }

    /// The counts of a pair; `None` if the cohort is full and does not have it. A full cohort keeps
    /// the pairs that came first: which pairs are selected does not depend on answers to come.
    fn counts_of(&mut self, pair: (u16, u16), full: bool) -> Option<&mut [u32; 3]> {
        if full && !self.pairs.contains_key(&pair) {
            return None;
        }
        Some(self.pairs.entry(pair).or_default())
    }

    /// Keep the answer of a unit that was issued first, and the units with the smallest hash.
    fn put(&mut self, answer: UnitAnswer) -> UnitPlace {
        let key = mix(answer.unit);
        if let Some(known) = self.units.get_mut(&key) {
            if (known.issued_at, known.nonce) <= (answer.issued_at, answer.nonce) {
                return UnitPlace { refused: Some(Reason::RepeatedUnit), ..Default::default() };
            }
            let replaced = std::mem::replace(known, answer);
            return UnitPlace {
                replaced: Some((replaced, Reason::RepeatedUnit)),
                ..Default::default()
            };
        }
        let full = self.units.len() >= UNITS_MAX;
        if full && self.units.last_key_value().is_some_and(|(&largest, _)| largest < key) {
            return UnitPlace { refused: Some(Reason::Full), ..Default::default() };
        }
        let replaced = if full { self.units.pop_last() } else { None };
        self.units.insert(key, answer);
        UnitPlace {
            replaced: replaced.map(|(_, answer)| (answer, Reason::Full)),
            ..Default::default()
        }
    }
}

fn code_of(outcome: Outcome) -> Option<u8> {
    match outcome {
        Outcome::First => Some(0),
        Outcome::Second => Some(1),
        Outcome::Half => Some(2),
        Outcome::Void | Outcome::None => None,
    }
}

fn outcome_of(code: u8) -> Outcome {
    match code {
        0 => Outcome::First,
        1 => Outcome::Second,
        _ => Outcome::Half,
    }
}
