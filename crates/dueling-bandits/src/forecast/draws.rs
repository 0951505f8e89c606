//! Simulated futures of a run, and how long they take until the verdict.

use std::collections::VecDeque;

use rand::RngExt;
use special::Error as _;

use crate::run::Run;
use crate::{Bandit, InFlight, Outcome, PolicyRng, Selection};

/// Steps of one draw between two looks at the others.
const STRIDE: u64 = 64;

/// One simulated future.
pub(super) struct Draw {
    /// Which of the draws it is.
    pub number: usize,
    run: Run,
    /// Selections whose answers have not come; at most `late` of them.
    waiting: VecDeque<Selection>,
    late: usize,
    /// `P[i][j]` at `i * K + j`.
    preferences: Vec<f64>,
    /// Steps since the start, self-duels and those without an answer included.
    pub steps: u64,
    /// Steps that compared nothing.
    pub self_duels: u64,
    /// How often each ranker was shown; a step shows two.
    pub appearances: Vec<u64>,
}

impl Draw {
    /// A future of `run` under these preferences. An answer comes `late` further selections later.
    pub fn new(number: usize, run: Run, preferences: Vec<f64>, late: usize) -> Self {
        let (appearances, waiting) = (vec![0; run.roster().rankers()], VecDeque::new());
        Self { number, run, waiting, late, preferences, steps: 0, self_duels: 0, appearances }
    }

    /// Steps that compared two rankers, with an answer.
    pub fn comparisons(&self) -> u64 {
        self.steps - self.self_duels - self.waiting.len() as u64
    }

    /// Up to [`STRIDE`] further steps. Returns whether there is a verdict.
    fn advance(&mut self, rng: &mut PolicyRng) -> bool {
        let (none, rankers) = (InFlight::new(), self.appearances.len());
        for _ in 0..STRIDE {
            self.steps += 1;
            self.waiting.push_back(self.run.select(&none, rng));
            if self.waiting.len() <= self.late {
                continue;
            }
            let Some(selection) = self.waiting.pop_front() else { continue };
            let duel = selection.duel;
            self.appearances[duel.first] += 1;
            self.appearances[duel.second] += 1;
            if duel.is_self() {
                self.self_duels += 1;
                self.run.observe_self_duels(duel.first, 1);
                continue;
            }
            let first_wins =
                rng.random::<f64>() < self.preferences[duel.first * rankers + duel.second];
            let outcome = if first_wins { Outcome::First } else { Outcome::Second };
            self.run.observe(&selection.observed(outcome));
            if self.run.verdict().verdict().is_some() {
                return true;
            }
        }
        false
    }
}

/// Draws that run side by side.
pub(super) struct Race {
    /// Those that have a verdict.
    pub ended: Vec<Draw>,
    /// The others. All of them took the same number of steps, or [`STRIDE`] fewer.
    pub open: Vec<Draw>,
    needed: usize,
    budget: u64,
    /// Steps of all draws.
    pub spent: u64,
}

impl Race {
    /// A race until `needed` of the draws have ended, with about `budget` steps at most.
    pub fn new(draws: Vec<Draw>, needed: usize, budget: u64) -> Self {
        Self { ended: Vec::with_capacity(draws.len()), open: draws, needed, budget, spent: 0 }
    }

    /// Up to [`STRIDE`] steps of each open draw. Returns whether the race goes on.
    pub fn go_on(&mut self, rng: &mut PolicyRng) -> bool {
        for mut draw in std::mem::take(&mut self.open) {
            let before = draw.steps;
            let has_ended = draw.advance(rng);
            self.spent += draw.steps - before;
            if has_ended { self.ended.push(draw) } else { self.open.push(draw) }
        }
        self.ended.len() < self.needed && self.spent < self.budget && !self.open.is_empty()
    }
}

/// How long the draws take. Those that have not ended take more than `reached`.
pub(super) struct Durations {
    /// Of the draws that have ended, ascending.
    ends: Vec<f64>,
    /// Number of all draws.
    draws: usize,
    reached: f64,
}

impl Durations {
    /// The durations in the unit of `length`.
    pub fn of(raced: &Race, length: impl Fn(&Draw) -> f64) -> Self {
        let mut ends: Vec<f64> = raced.ended.iter().map(&length).collect();
        ends.sort_unstable_by(f64::total_cmp);
        let reached = raced.open.iter().map(length).reduce(f64::min).unwrap_or(0.0);
        Self { draws: ends.len() + raced.open.len(), ends, reached }
    }

    /// The duration that all draws that have not ended exceed.
    pub fn reached(&self) -> f64 {
        self.reached
    }

    /// A quantile. Where the draws around it have not ended, it is that of a log-normal
    /// distribution through those that have; `None` if fewer than `least` have.
    pub fn at(&self, share: f64, least: usize) -> Option<f64> {
        let place = share * (self.draws - 1) as f64;
        let around = (self.ends.get(place as usize), self.ends.get(place.ceil() as usize));
        if let (Some(below), Some(above)) = around {
            return Some(below + (above - below) * place.fract());
        }
        (self.ends.len() >= least).then(|| self.log_normal(share).max(self.reached))
    }

    /// A quantile of the log-normal distribution by regression on order statistics: the straight
    /// line that fits the logarithms of the durations over the normal quantiles of their places
    /// among all draws.
    fn log_normal(&self, share: f64) -> f64 {
        let normal = |share: f64| std::f64::consts::SQRT_2 * (2.0 * share - 1.0).inv_error();
        // Blom's places, which are nearly unbiased for normal order statistics
        let place = |i: usize| normal((i as f64 + 0.625) / (self.draws as f64 + 0.25));
        let points = || self.ends.iter().enumerate().map(|(i, end)| (place(i), end.ln()));
        let count = self.ends.len() as f64;
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (mean_x, mean_y) = (sum_x / count, sum_y / count);
        let (covariance, variance) = points().fold((0.0, 0.0), |(covariance, variance), (x, y)| {
            let from_mean = x - mean_x;
            (covariance + from_mean * (y - mean_y), variance + from_mean * from_mean)
        });
        (mean_y + covariance / variance * (normal(share) - mean_x)).exp()
    }
}
