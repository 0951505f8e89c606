//! Answers that the verdict counts by their score.
//!
//! Some methods of interleaving give a page a score from -1 to 1: how much of it decided for one of
//! the two rankers. A policy needs a winner or none, so a coin decides whether the page counts at
//! all: with the probability `v = |score|`, its *weight*. The verdict does not need the coin. A win
//! with the weight `v` has the factor
//!
//! `1 + v (p_g / b - 1)`, and a loss the factor `1 + v ((1 - p_g) / (1 - b) - 1)`
//!
//! in place of those of `lead`. Each is the mean of the answer's factor over the
//! coin. So the null hypothesis is the same as with the coin: of what decides, at most the share
//! `b` decides for the ranker. And the evidence grows at least as fast, because the logarithm of a
//! mean is not below the mean of the logarithm.
//!
//! # Rounding
//!
//! Weights are rounded at random to one of a few [`WEIGHTS`], so that the state is a table of
//! counts. The rounded weight has the weight as its mean, and the factors are linear in it, so the
//! mean of a factor stays what it is. The evidence grows more slowly by as much as rounding makes
//! the mean square larger: by at most a 24th from weights above 1/8.

use std::collections::BTreeMap;

use crate::{Duel, Outcome};

/// The weights, in sixteenths. Neighbours differ by a power of two, so that the probability to
/// round up is exact.
const SIXTEENTHS: [u8; LEVELS] = [0, 1, 2, 3, 4, 6, 8, 12, 16];
/// Number of weights.
pub(super) const LEVELS: usize = 9;
/// Number of codes of a score.
pub(super) const CODES: u8 = 2 * SILENT;
/// The codes of silent scores follow those of others.
const SILENT: u8 = 4 * LEVELS as u8;

/// The weights that scores are rounded to.
pub const WEIGHTS: [f64; LEVELS] = {
    let mut weights = [0.0; LEVELS];
    let mut level = 0;
    while level < LEVELS {
        weights[level] = SIXTEENTHS[level] as f64 / 16.0;
        level += 1;
    }
    weights
};

/// The score of an answer, rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    is_first: bool,
    level: u8,
    is_drawn: bool,
    /// Whether the policy observes no outcome of it.
    is_silent: bool,
}

impl Score {
    /// The denominator of weights.
    pub const ONE: u32 = 1 << 24;

    /// Of a page that decides for the first ranker or for the second one, with a `weight` of at
    /// most [`Score::ONE`]. `is_drawn` says whether the coin made it a win of that ranker, for the
    /// policy. `happens(n)` tosses a coin with the probability `n` over [`Score::ONE`].
    pub fn rounded(
        is_first: bool,
        weight: u32,
        is_drawn: bool,
        happens: impl FnOnce(u32) -> bool,
    ) -> Self {
        let at = |level: usize| u32::from(SIXTEENTHS[level]) * (Self::ONE / 16);
        let weight = weight.min(Self::ONE);
        let below = (0..LEVELS).rev().find(|&level| at(level) <= weight).unwrap_or(0);
        let rest = weight - at(below);
        let is_up = rest > 0 && {
            let gap = at(below + 1) - at(below);
            happens(rest * (Self::ONE / gap))
        };
        Self { is_first, level: below as u8 + u8::from(is_up), is_drawn, is_silent: false }
    }

    /// The same of a basket of orders, of which the policy has learned before.
    pub fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }

    /// The rounded weight: one of [`WEIGHTS`].
    pub fn weight(self) -> f64 {
        WEIGHTS[usize::from(self.level)]
    }

    /// The outcome that the policy observes.
    pub fn outcome(self) -> Outcome {
        if self.is_silent { Outcome::Void } else { self.by_coin() }
    }

    /// The outcome that the coin made it, for those who count outcomes.
    pub fn by_coin(self) -> Outcome {
        match (self.is_drawn, self.is_first) {
            (false, _) => Outcome::Void,
            (true, true) => Outcome::First,
            (true, false) => Outcome::Second,
        }
    }

    /// Whether it decided for the first ranker.
    pub(crate) fn is_first(self) -> bool {
        self.is_first
    }

    /// The place of its weight among [`WEIGHTS`].
    pub(crate) fn level(self) -> usize {
        self.level.into()
    }

    /// A number below [`CODES`].
    pub(super) fn code(self) -> u8 {
        let silent = if self.is_silent { SILENT } else { 0 };
        silent + self.level * 4 + u8::from(self.is_drawn) * 2 + u8::from(self.is_first)
    }

    pub(super) fn of_code(code: u8) -> Self {
        let (is_silent, code) = (code >= SILENT, code % SILENT);
        Self { level: code / 4, is_drawn: code & 2 > 0, is_first: code & 1 > 0, is_silent }
    }

    fn winner_and_loser(self, duel: Duel) -> (u16, u16) {
        let (first, second) = (duel.first as u16, duel.second as u16);
        if self.is_first { (first, second) } else { (second, first) }
    }
}

/// How many answers have each weight.
pub type Levels = [u32; LEVELS];

/// The scores of one ordered pair: those that decided for its first ranker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
struct PairScores {
    levels: Levels,
    /// How many of them the coin made a win.
    drawn: u32,
}

/// Counts of scores by ordered pair.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ScoreCounts {
    pairs: BTreeMap<(u16, u16), PairScores>,
}

impl ScoreCounts {
    /// `count` more answers with this score.
    pub fn add(&mut self, duel: Duel, score: Score, count: u32) {
        let pair = self.pairs.entry(score.winner_and_loser(duel)).or_default();
        let level = &mut pair.levels[usize::from(score.level)];
        *level = level.saturating_add(count);
        if score.outcome() != Outcome::Void {
            pair.drawn = pair.drawn.saturating_add(count);
        }
    }

    /// Take `count` answers back that were added.
    pub(super) fn remove(&mut self, duel: Duel, score: Score, count: u32) {
        let key = score.winner_and_loser(duel);
        if let Some(pair) = self.pairs.get_mut(&key) {
            let level = &mut pair.levels[usize::from(score.level)];
            *level = level.saturating_sub(count);
            if score.outcome() != Outcome::Void {
                pair.drawn = pair.drawn.saturating_sub(count);
            }
            // equal scores are equal counts, whatever was added and taken back before
            if *pair == PairScores::default() {
                self.pairs.remove(&key);
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// How many answers there are.
    pub fn answers(&self) -> u64 {
        self.pairs.values().flat_map(|pair| pair.levels).map(u64::from).sum()
    }

    /// Estimated bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<((u16, u16), PairScores)>() * self.pairs.len()
    }

    /// The answers that decided for `x` against `y`, by weight; `None` if there are none.
    pub fn levels(&self, x: usize, y: usize) -> Option<&Levels> {
        self.pairs.get(&(x as u16, y as u16)).map(|pair| &pair.levels)
    }

    /// The wins of `x` over `y` that counting by score adds: the sum of the weights, less the wins
    /// that the coin drew.
    pub(super) fn added_wins(&self, x: usize, y: usize) -> f64 {
        self.pairs.get(&(x as u16, y as u16)).map_or(0.0, |pair| {
            let weights = pair.levels.iter().zip(WEIGHTS);
            weights.map(|(&count, weight)| f64::from(count) * weight).sum::<f64>()
                - f64::from(pair.drawn)
        })
    }

    /// The wins of `x` over `y` that the coin drew.
    pub(super) fn drawn(&self, x: usize, y: usize) -> u32 {
        self.pairs.get(&(x as u16, y as u16)).map_or(0, |pair| pair.drawn)
    }

    /// Whether decoded counts fit this many rankers, with `half_wins(x, y)` that count.
    pub(super) fn is_sound(&self, rankers: usize, half_wins: impl Fn(usize, usize) -> u32) -> bool {
        self.pairs.iter().all(|(&(x, y), pair)| {
            let (x, y) = (usize::from(x), usize::from(y));
            let answers: u64 = pair.levels.iter().map(|&count| u64::from(count)).sum();
            x != y
                && x.max(y) < rankers
                && u64::from(pair.drawn) <= answers
                && pair.drawn <= half_wins(x, y) / 2
        })
    }
}
