//! IF2, Interleaved Filter 2 (Yue, Broder, Kleinberg, Joachims: "The K-armed Dueling Bandits
//! Problem", JCSS 2012): a candidate meets the remaining rankers in turn, until some of them are
//! clearly worse or one is clearly better.
//!
//! `δ = 1/(T K²)`, `c(n) = sqrt(s ln(1/δ)/n)` with `s = 4` (the journal's value; the conference
//! version has 1). Let `P̂_b` be the candidate's mean against `b`, and `n` the number of completed
//! round-robins. After each round-robin:
//!
//! 1. Every `b` with `P̂_b - c(n) > 1/2` is removed.
//! 2. If some remaining `b'` has `P̂_b' + c(n) < 1/2`, it replaces the candidate. Every `b` with
//!    `P̂_b > 1/2` is removed together with the old candidate (the pruning that distinguishes IF2
//!    from IF1), and all counts restart. Among several `b'`, the one with the smallest `P̂` is
//!    chosen, then the lowest index.
//!
//! - Concurrent requests get the rankers with the fewest comparisons, including duels in flight:
//!   first the rest of the round-robin, then the next ones. `n` is the smallest count; `P̂_b` uses
//!   the count of each ranker.
//! - An outcome is used only if it compares the candidate with a remaining ranker, in either order.
//!   Any other outcome counts in the tally only. A half win counts half. After a page without a
//!   click or a skipped tie, the same duel is issued again.
//! - A self-duel is a step without information.
//! - The horizon only sets the radius; the policy continues unchanged after it.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::parameters::require;
use dueling_bandits::{
    Bandit, InFlight, InvalidPolicy, Observation, Outcome, PolicyRng, Selection, Setup, Tally,
    step_rng,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterleavedFilter {
    /// `T`, in steps.
    pub horizon: u64,
    /// `s`.
    pub scale: f64,
}

impl Default for InterleavedFilter {
    fn default() -> Self {
        Self { horizon: 0, scale: 4.0 }
    }
}

impl Parameters for InterleavedFilter {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require(self.horizon >= 1, "horizon", self.horizon, "at least 1 step")?;
        require(
            self.scale.is_finite() && self.scale > 0.0,
            "scale",
            self.scale,
            "a finite number above 0",
        )
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        let k = setup.rankers;
        let candidate = step_rng(setup.seed, 0).random_range(0..k);
        let rival = |b| Rival { left: b != candidate, plays: 0, half_wins: 0 };
        let log_confidence = libm::log(self.horizon as f64) + 2.0 * libm::log(k as f64);
        Box::new(Filter {
            spread: self.scale * log_confidence,
            tally: Tally::new(k),
            candidate,
            rivals: (0..k).map(rival).collect(),
            rounds: 0,
        })
    }
}

/// The candidate's results against another ranker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rival {
    /// Whether the ranker is in `A`.
    left: bool,
    /// Comparisons with the current candidate.
    plays: u64,
    /// The candidate's wins in these comparisons, in halves.
    half_wins: u64,
}

impl Rival {
    /// `P̂_b`. Meaningful only for rankers in `A`, once each of them was compared.
    fn mean(self) -> f64 {
        self.half_wins as f64 / (2.0 * self.plays as f64)
    }
}

#[derive(Debug)]
struct Filter {
    /// `s ln(1/δ)`.
    spread: f64,
    tally: Tally,
    /// `b̂`.
    candidate: usize,
    /// One entry per ranker; the candidate's own entry is unused.
    rivals: Vec<Rival>,
    /// `n`.
    rounds: u64,
}

impl Filter {
    fn rivals_left(&self) -> impl Iterator<Item = (usize, Rival)> {
        self.rivals.iter().copied().enumerate().filter(|(_, rival)| rival.left)
    }

    /// Apply the rules at the end of a round-robin, if the newest comparison completed one.
    fn end_round(&mut self) {
        let Some(rounds) = self.rivals_left().map(|(_, rival)| rival.plays).min() else { return };
        if rounds <= self.rounds {
            return;
        }
        self.rounds = rounds;
        let radius = (self.spread / rounds as f64).sqrt(); // c(n)
        for rival in &mut self.rivals {
            rival.left &= rival.mean() - radius <= 0.5;
        }
        let better = self
            .rivals_left()
            .filter(|(_, rival)| rival.mean() + radius < 0.5)
            .reduce(|a, b| if b.1.mean() < a.1.mean() { b } else { a });
        if let Some((candidate, _)) = better {
            for (b, rival) in self.rivals.iter_mut().enumerate() {
                let stays = rival.left && b != candidate && rival.mean() <= 0.5;
                *rival = Rival { left: stays, plays: 0, half_wins: 0 };
            }
            self.candidate = candidate;
            self.rounds = 0;
        }
    }
}

impl Bandit for Filter {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let candidate = self.candidate;
        let next = self
            .rivals_left()
            .min_by_key(|(b, rival)| rival.plays + u64::from(in_flight.of(candidate, *b)));
        Selection::of(candidate, next.map_or(candidate, |(b, _)| b))
    }

    fn observe(&mut self, observation: &Observation) {
        let (first, second) = (observation.duel.first, observation.duel.second);
        self.tally.record(observation.duel, observation.outcome);
        let candidate = self.candidate;
        let (first_half, second_half) = observation.outcome.half_wins();
        let (rival, half_wins) = match (first == candidate, second == candidate) {
            (true, false) => (&mut self.rivals[second], first_half),
            (false, true) => (&mut self.rivals[first], second_half),
            _ => return,
        };
        if rival.left && !matches!(observation.outcome, Outcome::Void | Outcome::None) {
            rival.plays += 1;
            rival.half_wins += u64::from(half_wins);
            self.end_round();
        }
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }

    fn champion(&self) -> usize {
        self.candidate
    }
}
