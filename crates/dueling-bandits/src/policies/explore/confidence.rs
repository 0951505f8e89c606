//! Confidence intervals of the pairs, and the decisions that follow from them
//! (`lab/notes/comparators.md` §11.1 and §11.2).

use crate::pairs::{pair_at, pair_count};
use crate::{Duel, Tally};

/// The radius of a confidence interval, `c(n) = sqrt(ln(η(n) / δ) / 2n)`. The logarithm is kept as
/// a sum, because the product overflows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Radius {
    /// The part that does not depend on `n`.
    constant: f64,
    /// The factor of `ln n`.
    slope: f64,
}

impl Radius {
    /// `η = 2 N T`.
    pub fn finite(parameters: usize, horizon: u64, delta: f64) -> Self {
        let constant =
            libm::log(2.0 * parameters as f64) + libm::log(horizon as f64) - libm::log(delta);
        Self { constant, slope: 0.0 }
    }

    /// `η(n) = π² N n² / 3`: valid at all times simultaneously.
    pub fn anytime(parameters: usize, delta: f64) -> Self {
        let pi = core::f64::consts::PI;
        let constant = libm::log(pi * pi / 3.0) + libm::log(parameters as f64) - libm::log(delta);
        Self { constant, slope: 2.0 }
    }

    /// `c(n)` after `n` comparisons with information; infinite before the first.
    pub fn after(&self, comparisons: f64) -> f64 {
        if comparisons <= 0.0 {
            return f64::INFINITY;
        }
        let slope = if self.slope > 0.0 { self.slope * libm::log(comparisons) } else { 0.0 };
        ((self.constant + slope) / (2.0 * comparisons)).sqrt()
    }

    /// The mean `p̂[i][j]` of the pair `duel` in the tally, and its radius.
    pub fn of(&self, tally: &Tally, duel: Duel) -> (f64, f64) {
        let Duel { first, second } = duel;
        (tally.mean(first, second).unwrap_or(0.5), self.after(tally.plays(first, second)))
    }
}

/// An interval that contains a parameter in [0, 1]; it narrows with each comparison.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The interval before any comparison.
    pub const UNIT: Self = Self { low: 0.0, high: 1.0 };

    /// `mean ± radius`, intersected with the previous interval if `intersect` is set. If the
    /// intersection is empty (the event that the confidence excludes), the result is the mean
    /// alone, which decides the pair.
    pub fn narrowed(self, (mean, radius): (f64, f64), intersect: bool) -> Self {
        let latest = Self { low: mean - radius, high: mean + radius };
        if !intersect {
            return latest;
        }
        let met = Self { low: latest.low.max(self.low), high: latest.high.min(self.high) };
        if met.low > met.high { Self { low: mean, high: mean } } else { met }
    }

    /// The side of 1/2 on which the parameter certainly lies: `true` for above, `None` if
    /// uncertain.
    pub fn verdict(self) -> Option<bool> {
        match (self.low > 0.5, self.high < 0.5) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    pub(super) fn is_sound(self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }
}

/// The intervals of all pairs, and for each ranker how many others it surely beats and surely loses
/// to.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Intervals {
    /// `P[i][j]` of every pair, by pair index.
    of: Vec<Interval>,
    /// Derived from the intervals, as are the losses.
    #[serde(skip)]
    wins: Vec<usize>,
    #[serde(skip)]
    losses: Vec<usize>,
}

impl Intervals {
    /// The intervals before any comparison.
    pub fn new(rankers: usize) -> Self {
        let none = vec![0; rankers];
        Self { of: vec![Interval::UNIT; pair_count(rankers)], wins: none.clone(), losses: none }
    }

    /// The interval of a pair, for the probability that its lower ranker wins.
    pub fn get(&self, number: u32) -> Interval {
        self.of[number as usize]
    }

    /// Replace the interval of a pair. Returns whether the decision on the pair changed.
    pub fn set(&mut self, number: u32, interval: Interval) -> bool {
        let before = std::mem::replace(&mut self.of[number as usize], interval).verdict();
        let after = interval.verdict();
        if before == after {
            return false;
        }
        let Duel { first, second } = pair_at(number as usize);
        let sides = |low_wins: bool| if low_wins { (first, second) } else { (second, first) };
        if let Some((winner, loser)) = before.map(sides) {
            self.wins[winner] -= 1;
            self.losses[loser] -= 1;
        }
        if let Some((winner, loser)) = after.map(sides) {
            self.wins[winner] += 1;
            self.losses[loser] += 1;
        }
        true
    }

    /// Narrow the interval of a pair by its counts in the tally. Returns whether the decision on
    /// the pair changed. A pair keeps its interval if no comparison of it had information.
    pub fn learn(&mut self, number: u32, radius: Radius, tally: &Tally, intersect: bool) -> bool {
        let duel = pair_at(number as usize);
        tally.half_plays(duel.first, duel.second) > 0 && {
            let interval = self.get(number).narrowed(radius.of(tally, duel), intersect);
            self.set(number, interval)
        }
    }

    /// `lower_i`: the number of rankers that `i` certainly beats.
    pub fn lower(&self, i: usize) -> usize {
        self.wins[i]
    }

    /// `upper_i`: the number of rankers that do not certainly beat `i`.
    pub fn upper(&self, i: usize) -> usize {
        self.wins.len() - 1 - self.losses[i]
    }

    /// `max lower`: the largest number of rankers that any ranker certainly beats.
    pub fn most_sure_wins(&self) -> usize {
        self.wins.iter().copied().max().unwrap_or(0)
    }

    /// Check decoded intervals and derive the fields that are not saved; `None` if they are
    /// invalid.
    pub(super) fn resume(self, rankers: usize) -> Option<Self> {
        let sound = self.of.len() == pair_count(rankers)
            && self.of.iter().all(|interval| interval.is_sound());
        sound.then_some(())?;
        let mut derived = Self::new(rankers);
        for (number, interval) in (0..).zip(self.of) {
            derived.set(number, interval);
        }
        Some(derived)
    }
}

/// The two largest of at least two values. They give, for each value, the largest of the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargestOther {
    at: usize,
    largest: f64,
    next: f64,
}

impl LargestOther {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self { at: 0, largest: f64::NEG_INFINITY, next: f64::NEG_INFINITY };
        values.enumerate().fold(none, |best, (at, value)| {
            if value > best.largest {
                Self { at, largest: value, next: best.largest }
            } else {
                Self { next: best.next.max(value), ..best }
            }
        })
    }

    /// The largest value except the one at index `i`.
    pub(super) fn than(&self, i: usize) -> f64 {
        if i == self.at { self.next } else { self.largest }
    }
}
