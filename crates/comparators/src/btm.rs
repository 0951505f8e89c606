//! BTM, Beat the Mean (Yue, Joachims: "Beat the Mean Bandit", ICML 2011), in its online form:
//! remove the ranker that loses most clearly against the mean of the remaining rankers.
//!
//! `A` is the set of remaining rankers. `n_b` and `w_b` are the comparisons and wins of `b` as
//! first ranker against those of `A`, and `P̂_b = w_b/n_b`. The radius is
//! `c(n) = κ γ² sqrt(ln(1/δ)/n)` with `δ = 1/(2TK)` and `c(0) = 1`. `κ = 3` is the paper's value;
//! the paper allows `κ = 1` for `γ = 1`.
//!
//! - Select: `b` is the ranker with the fewest comparisons, including duels in flight. Its opponent
//!   is uniform in `A`, because the mean bandit contains `b` itself. A duel in flight counts half
//!   for each ranker of its pair, which is unordered.
//! - Only the first ranker's counts change. An outcome is used only if both its rankers remain;
//!   otherwise it counts in the tally only. A half win counts half. A page without a click and a
//!   skipped tie change nothing.
//! - A self-duel is one comparison against the mean; its outcome is a fair coin, drawn in the fold.
//!   If `self_pairs` is off, or the ranker was removed, it is a step without information.
//! - The horizon only sets the radius; the policy continues unchanged after it.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::bandit::{Bandit, Parameters};
use crate::coin;
use crate::ucb;
use dueling_bandits::parameters::require;
use dueling_bandits::policies::choose;
use dueling_bandits::{
    InFlight, InvalidPolicy, Observation, Outcome, PolicyRng, Selection, Setup, Tally, step_rng,
};

/// Parameters of Beat the Mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeatTheMean {
    /// `T`, in steps.
    pub horizon: u64,
    /// `γ`.
    pub gamma: f64,
    /// `κ`.
    pub kappa: f64,
    /// Whether a ranker may be drawn as its own opponent.
    pub self_pairs: bool,
}

impl Default for BeatTheMean {
    fn default() -> Self {
        Self { horizon: 0, gamma: 1.3, kappa: 3.0, self_pairs: true }
    }
}

impl Parameters for BeatTheMean {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require(self.horizon >= 1, "horizon", self.horizon, "at least 1 step")?;
        require(
            self.gamma.is_finite() && self.gamma >= 1.0,
            "gamma",
            self.gamma,
            "a finite number of at least 1",
        )?;
        require(
            self.kappa.is_finite() && self.kappa > 0.0,
            "kappa",
            self.kappa,
            "a finite number above 0",
        )
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        let k = setup.rankers;
        let counts =
            Counts { plays: vec![0; k * k], half_wins: vec![0; k * k], left: vec![true; k] };
        Box::new(MeanBandit::new(self.clone(), setup, Tally::new(k), counts))
    }
}

/// The results of each ranker as first ranker, and the remaining rankers.
#[derive(Debug, Clone)]
struct Counts {
    /// `n[b][b']`, row-major `K × K`, row = first ranker.
    plays: Vec<u64>,
    /// `w[b][b']`, in halves.
    half_wins: Vec<u64>,
    /// Whether each ranker is in `A`.
    left: Vec<bool>,
}

/// `n_b` and `w_b`, the latter in halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Standing {
    plays: u64,
    half_wins: u64,
}

impl Standing {
    /// `P̂_b` as a fraction; 1/2 without comparisons.
    fn fraction(self) -> (u128, u128) {
        if self.plays == 0 {
            (1, 2)
        } else {
            (u128::from(self.half_wins), 2 * u128::from(self.plays))
        }
    }

    fn mean(self) -> f64 {
        let (wins, plays) = self.fraction();
        wins as f64 / plays as f64
    }

    fn is_below(self, other: Self) -> bool {
        let ((w, n), (other_w, other_n)) = (self.fraction(), other.fraction());
        w * other_n < other_w * n
    }
}

#[derive(Debug)]
struct MeanBandit {
    parameters: BeatTheMean,
    seed: u64,
    /// `ln(1/δ)`.
    log_confidence: f64,
    tally: Tally,
    counts: Counts,
    /// For each ranker, its results against the remaining ones: sums over the rows of `counts`.
    standings: Vec<Standing>,
    /// `A`, ascending.
    active: Vec<usize>,
}

impl MeanBandit {
    fn new(parameters: BeatTheMean, setup: Setup, tally: Tally, counts: Counts) -> Self {
        let k = setup.rankers;
        let active: Vec<usize> = (0..k).filter(|&b| counts.left[b]).collect();
        let sum = |of: &[u64], b: usize| active.iter().map(|&other| of[b * k + other]).sum();
        let standing =
            |b| Standing { plays: sum(&counts.plays, b), half_wins: sum(&counts.half_wins, b) };
        let standings = (0..k).map(standing).collect();
        let log_confidence = libm::log(2.0 * parameters.horizon as f64 * k as f64);
        Self { parameters, seed: setup.seed, log_confidence, tally, counts, standings, active }
    }

    /// `c(n)`.
    fn radius(&self, plays: u64) -> f64 {
        if plays == 0 {
            return 1.0;
        }
        let BeatTheMean { gamma, kappa, .. } = self.parameters;
        kappa * gamma * gamma * (self.log_confidence / plays as f64).sqrt()
    }

    /// Fold one comparison of `first` against the mean, represented by `second`; then remove at
    /// most one ranker.
    fn compare(&mut self, first: usize, second: usize, half_win: u64) {
        let cell = first * self.tally.rankers() + second;
        self.counts.plays[cell] += 1;
        self.counts.half_wins[cell] += half_win;
        self.standings[first].plays += 1;
        self.standings[first].half_wins += half_win;
        self.eliminate();
    }

    fn eliminate(&mut self) {
        let standings = || self.active.iter().map(|&b| self.standings[b]);
        let (Some(fewest), Some(worst), Some(best)) = (
            standings().map(|standing| standing.plays).min(),
            standings().reduce(|a, b| if b.is_below(a) { b } else { a }),
            standings().reduce(|a, b| if a.is_below(b) { b } else { a }),
        ) else {
            return;
        };
        let radius = self.radius(fewest);
        if self.active.len() == 1 || worst.mean() + radius > best.mean() - radius {
            return;
        }
        let tied: Vec<usize> =
            self.active.iter().copied().filter(|&b| !worst.is_below(self.standings[b])).collect();
        let out = match tied[..] {
            [only] => only,
            _ => tied[step_rng(self.seed, self.tally.steps()).random_range(0..tied.len())],
        };
        self.counts.left[out] = false;
        self.active.retain(|&b| b != out);
        for b in 0..self.standings.len() {
            let cell = b * self.tally.rankers() + out;
            self.standings[b].plays -= self.counts.plays[cell];
            self.standings[b].half_wins -= self.counts.half_wins[cell];
        }
    }
}

impl Bandit for MeanBandit {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if let [winner] = self.active[..] {
            return Selection::of(winner, winner);
        }
        let pending = ucb::pending(in_flight, self.tally.rankers(), |_, _| 0.5);
        let plays = |b: usize| self.standings[b].plays as f64 + pending[b];
        let fewest = self.active.iter().map(|&b| plays(b)).fold(f64::INFINITY, f64::min);
        let tied = self.active.iter().copied().filter(|&b| plays(b) == fewest);
        let first = choose::uniform(tied, rng).unwrap_or(self.active[0]);
        let opponents =
            self.active.iter().copied().filter(|&b| self.parameters.self_pairs || b != first);
        Selection::of(first, choose::uniform(opponents, rng).unwrap_or(first))
    }

    fn observe(&mut self, observation: &Observation) {
        let (first, second) = (observation.duel.first, observation.duel.second);
        self.tally.record(observation.duel, observation.outcome);
        let compared = !matches!(observation.outcome, Outcome::Void | Outcome::None);
        if compared && self.counts.left[first] && self.counts.left[second] && self.active.len() > 1
        {
            self.compare(first, second, u64::from(observation.outcome.half_wins().0));
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        for folded in 0..count {
            if !self.parameters.self_pairs || !self.counts.left[ranker] || self.active.len() == 1 {
                self.tally.skip(count - folded);
                return;
            }
            let head = coin::heads(self.seed, self.tally.steps(), 1);
            self.tally.skip(1);
            self.compare(ranker, ranker, 2 * head);
        }
    }

    /// The ranker with the largest `P̂`; the first one on a tie.
    fn champion(&self) -> usize {
        let better =
            |a: usize, b: usize| if self.standings[a].is_below(self.standings[b]) { b } else { a };
        self.active.iter().copied().reduce(better).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandit(gamma: f64, kappa: f64, plays: [[u64; 3]; 3], wins: [[u64; 3]; 3]) -> MeanBandit {
        let parameters = BeatTheMean { horizon: 1000, gamma, kappa, self_pairs: true };
        let half_wins = wins.concat().into_iter().map(|wins| 2 * wins).collect();
        let counts = Counts { plays: plays.concat(), half_wins, left: vec![true; 3] };
        MeanBandit::new(parameters, Setup { rankers: 3, seed: 1 }, Tally::new(3), counts)
    }

    fn close(got: f64, wanted: f64) {
        assert!((got - wanted).abs() < 5e-7, "{got}, expected {wanted}");
    }

    const PLAYS: [[u64; 3]; 3] = [[300, 310, 290], [295, 305, 300], [310, 290, 300]];

    // the worked examples, T = 1000 and K = 3

    #[test]
    fn the_radius() {
        let none = [[0; 3]; 3];
        let exact = bandit(1.0, 3.0, none, none);
        close(exact.log_confidence, 8.699515);
        close(exact.radius(0), 1.0);
        close(exact.radius(100), 0.884848);
        close(exact.radius(500), 0.395716);
        close(exact.radius(900), 0.294949);
        close(bandit(1.3, 3.0, none, none).radius(900), 0.498464);
        close(bandit(1.2, 1.0, none, none).radius(900), 0.141576);
    }

    #[test]
    fn the_worst_ranker_is_removed_once_it_is_certain() {
        let wins = [[150, 290, 284], [60, 150, 285], [10, 30, 150]];
        let mut bandit = bandit(1.0, 3.0, PLAYS, wins);
        for (b, mean) in [(0, 0.804444), (1, 0.55), (2, 0.211111)] {
            close(bandit.standings[b].mean(), mean);
        }
        bandit.eliminate();
        assert_eq!(bandit.active, [0, 1]);
        assert_eq!(bandit.standings[0], Standing { plays: 610, half_wins: 880 });
        assert_eq!(bandit.standings[1], Standing { plays: 600, half_wins: 420 });
        close(bandit.standings[0].mean(), 0.721311);
        close(bandit.radius(600), 0.361238);
        bandit.eliminate();
        assert_eq!(bandit.active, [0, 1]);
    }

    #[test]
    fn no_ranker_is_removed_while_it_is_uncertain() {
        let wins = [[150, 270, 280], [60, 150, 235], [30, 60, 140]];
        let mut bandit = bandit(1.0, 3.0, PLAYS, wins);
        bandit.eliminate();
        assert_eq!(bandit.active, [0, 1, 2]);
    }

    #[test]
    fn the_sums_kept_are_the_sums_over_the_rows() {
        let mut bandit = bandit(1.0, 0.2, [[0; 3]; 3], [[0; 3]; 3]);
        let mut rng = step_rng(4, 4);
        for _ in 0..400 {
            let duel = bandit.select(&InFlight::new(), &mut rng).duel;
            if duel.is_self() {
                bandit.observe_self_duels(duel.first, 1);
            } else {
                let outcome = if duel.first < duel.second { Outcome::First } else { Outcome::Half };
                bandit.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
            }
            let again = MeanBandit::new(
                bandit.parameters.clone(),
                Setup { rankers: 3, seed: 1 },
                bandit.tally.clone(),
                bandit.counts.clone(),
            );
            assert_eq!(again.standings, bandit.standings);
            assert_eq!(again.active, bandit.active);
        }
        assert_eq!(bandit.active, [0]);
    }
}
