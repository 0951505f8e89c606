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

use crate::bandit::{Bandit, Parameters};
use dueling_bandits::parameters::require;
use dueling_bandits::{
    InFlight, InvalidPolicy, Observation, Outcome, PolicyRng, Selection, Setup, Tally, step_rng,
};

/// Parameters of Interleaved Filter 2.
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
        let state = State {
            tally: Tally::new(k),
            candidate: candidate as u16,
            rivals: (0..k)
                .map(|b| Rival { left: b != candidate, plays: 0, half_wins: 0 })
                .collect(),
            rounds: 0,
        };
        Box::new(Filter::new(self, setup, state))
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

#[derive(Debug, Clone)]
struct State {
    tally: Tally,
    /// `b̂`.
    candidate: u16,
    /// One entry per ranker; the candidate's own entry is unused.
    rivals: Vec<Rival>,
    /// `n`.
    rounds: u64,
}

#[derive(Debug)]
struct Filter {
    /// `s ln(1/δ)`.
    spread: f64,
    state: State,
}

impl Filter {
    fn new(parameters: &InterleavedFilter, setup: Setup, state: State) -> Self {
        let log_confidence =
            libm::log(parameters.horizon as f64) + 2.0 * libm::log(setup.rankers as f64);
        Self { spread: parameters.scale * log_confidence, state }
    }

    /// `c(n)`.
    fn radius(&self, rounds: u64) -> f64 {
        (self.spread / rounds as f64).sqrt()
    }

    fn rivals_left(&self) -> impl Iterator<Item = (usize, Rival)> {
        self.state.rivals.iter().copied().enumerate().filter(|(_, rival)| rival.left)
    }

    /// Apply the rules at the end of a round-robin, if the newest comparison completed one.
    fn end_round(&mut self) {
        let Some(rounds) = self.rivals_left().map(|(_, rival)| rival.plays).min() else { return };
        if rounds <= self.state.rounds {
            return;
        }
        self.state.rounds = rounds;
        let radius = self.radius(rounds);
        for rival in &mut self.state.rivals {
            rival.left &= rival.mean() - radius <= 0.5;
        }
        let better = self
            .rivals_left()
            .filter(|(_, rival)| rival.mean() + radius < 0.5)
            .reduce(|a, b| if b.1.mean() < a.1.mean() { b } else { a });
        if let Some((candidate, _)) = better {
            for (b, rival) in self.state.rivals.iter_mut().enumerate() {
                let stays = rival.left && b != candidate && rival.mean() <= 0.5;
                *rival = Rival { left: stays, plays: 0, half_wins: 0 };
            }
            self.state.candidate = candidate as u16;
            self.state.rounds = 0;
        }
    }
}

impl Bandit for Filter {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let candidate = usize::from(self.state.candidate);
        let next = self
            .rivals_left()
            .min_by_key(|(b, rival)| rival.plays + u64::from(in_flight.of(candidate, *b)));
        Selection::of(candidate, next.map_or(candidate, |(b, _)| b))
    }

    fn observe(&mut self, observation: &Observation) {
        let (first, second) = (observation.duel.first, observation.duel.second);
        self.state.tally.record(observation.duel, observation.outcome);
        let candidate = usize::from(self.state.candidate);
        let (first_half, second_half) = observation.outcome.half_wins();
        let (rival, half_wins) = match (first == candidate, second == candidate) {
            (true, false) => (&mut self.state.rivals[second], first_half),
            (false, true) => (&mut self.state.rivals[first], second_half),
            _ => return,
        };
        if rival.left && !matches!(observation.outcome, Outcome::Void | Outcome::None) {
            rival.plays += 1;
            rival.half_wins += u64::from(half_wins);
            self.end_round();
        }
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.state.tally.skip(count);
    }

    fn champion(&self) -> usize {
        usize::from(self.state.candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidate 0 against rankers 1, 2, 3 after 250 round-robins with these wins; `T = 1000`.
    fn filter(wins: [u64; 3]) -> Filter {
        let rival = |wins| Rival { left: true, plays: 250, half_wins: 2 * wins };
        let mut rivals = vec![Rival { left: false, plays: 0, half_wins: 0 }];
        rivals.extend(wins.map(rival));
        let state = State { tally: Tally::new(4), candidate: 0, rivals, rounds: 249 };
        let parameters = InterleavedFilter { horizon: 1000, scale: 4.0 };
        Filter::new(&parameters, Setup { rankers: 4, seed: 0 }, state)
    }

    fn left(filter: &Filter) -> Vec<usize> {
        filter.rivals_left().map(|(b, _)| b).collect()
    }

    // the worked examples, T = 1000 and K = 4

    #[test]
    fn the_radius() {
        let filter = filter([0; 3]);
        for (rounds, wanted) in [(100, 0.622265), (200, 0.440008), (250, 0.393555)] {
            let got = filter.radius(rounds);
            assert!((got - wanted).abs() < 5e-7, "{got}, expected {wanted}");
        }
        assert!((filter.spread / 4.0 - 9.680344).abs() < 5e-7);
    }

    #[test]
    fn a_better_ranker_takes_over_and_rankers_worse_than_the_old_candidate_are_removed() {
        let mut filter = filter([16, 130, 240]);
        filter.end_round();
        assert_eq!((filter.state.candidate, left(&filter)), (1, vec![]));
        let next = filter.select(&InFlight::new(), &mut step_rng(0, 0)).duel;
        assert_eq!((next.first, next.second), (1, 1));
    }

    #[test]
    fn a_worse_ranker_is_removed() {
        let mut filter = filter([100, 130, 240]);
        filter.end_round();
        assert_eq!((filter.state.candidate, left(&filter)), (0, vec![1, 2]));
        assert_eq!(filter.state.rounds, 250);
    }

    #[test]
    fn the_clearer_of_two_better_rankers_takes_over() {
        let mut filter = filter([16, 12, 120]);
        filter.end_round();
        assert_eq!((filter.state.candidate, left(&filter)), (2, vec![1, 3]));
        assert_eq!(filter.state.rounds, 0);
        assert!(filter.state.rivals.iter().all(|rival| rival.plays == 0 && rival.half_wins == 0));
    }
}
