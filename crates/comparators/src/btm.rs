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

use crate::coin;
use crate::parameters::Parameters;
use crate::ucb;
use dueling_bandits::parameters::require;
use dueling_bandits::policies::choose;
use dueling_bandits::{
    Bandit, InFlight, InvalidPolicy, Observation, Outcome, PolicyRng, Selection, Setup, Tally,
    step_rng,
};

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
        Box::new(MeanBandit {
            parameters: self.clone(),
            seed: setup.seed,
            log_confidence: libm::log(2.0 * self.horizon as f64 * k as f64),
            tally: Tally::new(k),
            results: vec![Standing::default(); k * k],
            standings: vec![Standing::default(); k],
            active: (0..k).collect(),
        })
    }
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
    /// `n[b][b']` and `w[b][b']`, row-major `K × K`, row = first ranker.
    results: Vec<Standing>,
    /// For each ranker, its results against the remaining ones: sums over the rows of `results`.
    standings: Vec<Standing>,
    /// `A`, ascending.
    active: Vec<usize>,
}

impl MeanBandit {
    fn remains(&self, ranker: usize) -> bool {
        self.active.binary_search(&ranker).is_ok()
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
        for standing in [&mut self.results[cell], &mut self.standings[first]] {
            standing.plays += 1;
            standing.half_wins += half_win;
        }
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
        self.active.retain(|&b| b != out);
        for (b, standing) in self.standings.iter_mut().enumerate() {
            let against = self.results[b * self.tally.rankers() + out];
            standing.plays -= against.plays;
            standing.half_wins -= against.half_wins;
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
        let pending = ucb::pending(in_flight, self.tally.rankers());
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
        if compared && self.remains(first) && self.remains(second) && self.active.len() > 1 {
            self.compare(first, second, u64::from(observation.outcome.half_wins().0));
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        for folded in 0..count {
            if !self.parameters.self_pairs || !self.remains(ranker) || self.active.len() == 1 {
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
