//! Pages of one ranker alone, and whether their units are split as planned.
//!
//! An interleaved page blends two rankers, so it says nothing about revenue or dwell time. A share
//! of the units therefore sees one ranker alone: the leader or the control, by a fair coin of the
//! unit. Their clicks say nothing about preferences.
//!
//! # Sample ratio
//!
//! The coin prefers neither arm, so as many units of either arm must come, unless something between
//! the coin and the log prefers one. With `a` and `b` units,
//!
//! `E = B(a₀ + a, a₀ + b) / B(a₀, a₀) · 2^(a + b)`, `a₀ = 500`,
//!
//! is the mean likelihood ratio of coins from a beta distribution around 1/2 against the fair coin:
//! a nonnegative martingale that starts at 1 if the arm of each unit is independent of all before
//! it. So it ever reaches `1/δ` in at most a share δ of experiments (Ville). There are two checks,
//! each with an error of its own: of units at their first page (the split), and of units with an
//! answer (the loss). If 4 % of the answers of one arm are lost, that shows after some 27,000
//! units.
//!
//! Answers for either arm may take differently long, so a unit with an answer counts when the
//! window of all pages that were issued at about the same time is over.

use std::collections::BTreeMap;

use super::Latch;
use crate::evidence::seen_units::SeenUnits;
use crate::math::mixture::ln_against_fair_coin;
use crate::rng::mix;

/// Imagined units of each arm before the first: the weight on deviations of a few percent. A large
/// loss shows a little later for it, a small one sooner.
const PRIOR: f64 = 500.0;
/// Error of each of the two checks.
pub const SPLIT_ERROR: f64 = 0.01;
/// Units with an answer are known under another hash.
const ANSWERED: u64 = 0x7c1f_9d0a_63b5_24e8;

/// The ranker that a unit sees alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arm {
    /// The leader, or the winner once there is one.
    Leader,
    /// The control.
    Control,
}

impl Arm {
    /// Its name in answers and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Control => "control",
        }
    }
}

/// Units by arm, and the evidence that the arms are not equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Split {
    units: [u64; 2],
    uneven: Latch,
}

impl Split {
    /// Units that see the leader, and that see the control.
    pub fn units(&self) -> [u64; 2] {
        self.units
    }

    /// The same with at least these units: answers come before the pages that they are to are
    /// written.
    pub fn with_at_least(self, other: Self) -> Self {
        let units = std::array::from_fn(|arm| self.units[arm].max(other.units[arm]));
        Self { units, ..self }
    }

    /// `ln E`.
    pub fn ln_evidence(&self) -> f64 {
        let [a, b] = self.units.map(|units| units as f64);
        ln_against_fair_coin(PRIOR, a, b)
    }

    /// The log position at which the arms were found uneven.
    pub fn uneven_since(&self) -> Option<u64> {
        self.uneven.decided_at()
    }

    fn check(&mut self, position: u64) {
        self.uneven.check(self.ln_evidence(), SPLIT_ERROR, position);
    }
}

/// The units that see one ranker alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct AlonePages {
    seen: SeenUnits,
    issued: Split,
    answered: Split,
    /// Answers of pages issued before this time come too late.
    complete_until: i64,
    /// Units with an answer that does not count yet, by the start of the cohort.
    waiting: BTreeMap<i64, [u32; 2]>,
}

impl AlonePages {
    /// Units by arm at their first page.
    pub fn issued(&self) -> &Split {
        &self.issued
    }

    /// Units by arm that have answered.
    pub fn answered(&self) -> &Split {
        &self.answered
    }

    /// Whether the units are not split evenly, at their first page or with an answer.
    pub fn is_uneven(&self) -> bool {
        [self.issued, self.answered].iter().any(|split| split.uneven_since().is_some())
    }

    /// Whether the first page of this unit is counted.
    pub fn has_issued(&self, unit: u64) -> bool {
        self.seen.contains(unit)
    }

    /// Units got a page; those that had one before do not count again.
    pub fn issue(&mut self, units: impl IntoIterator<Item = (u64, Arm)>, position: u64) {
        for (unit, arm) in units {
            self.issued.units[arm as usize] += u64::from(self.seen.insert(unit));
        }
        self.issued.check(position);
    }

    /// A unit has answered. Its answer waits with its cohort, which starts at this time; without a
    /// cohort it counts at once.
    pub fn answer(&mut self, unit: u64, arm: Arm, cohort: Option<i64>, position: u64) {
        if cohort.is_some_and(|start| start < self.complete_until)
            || !self.seen.insert(mix(unit ^ ANSWERED))
        {
            return;
        }
        match cohort {
            Some(start) => self.waiting.entry(start).or_default()[arm as usize] += 1,
            None => {
                self.answered.units[arm as usize] += 1;
                self.answered.check(position);
            }
        }
    }

    /// No answer of a cohort that starts before `until` can come any more.
    pub fn complete(&mut self, until: i64, position: u64) {
        self.complete_until = self.complete_until.max(until);
        let later = self.waiting.split_off(&self.complete_until);
        for units in std::mem::replace(&mut self.waiting, later).into_values() {
            for (all, units) in self.answered.units.iter_mut().zip(units) {
                *all += u64::from(units);
            }
            self.answered.check(position);
        }
    }

    /// Estimated bytes in memory: those of the known units, and the units that wait.
    pub fn bytes(&self) -> usize {
        self.seen.bytes()
            + size_of::<Self>()
            + 2 * size_of::<(i64, [u32; 2])>() * self.waiting.len()
    }

    /// Whether decoded counts are possible.
    pub fn is_sound(&self) -> bool {
        self.seen.is_sound()
            && [self.issued, self.answered]
                .iter()
                .all(|split| split.units.iter().sum::<u64>() <= self.seen.inserted())
    }
}
