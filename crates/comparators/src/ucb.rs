//! The singleton bandit machine of Sparring, MultiSBM and Doubler: UCB1 with a robustness parameter
//! (Ailon, Karnin, Joachims: "Reducing Dueling Bandits to Cardinal Bandits", ICML 2014, section 3).
//!
//! The index of an arm is `mean + sqrt((α+2) ln t / 2n)`, and infinite for an arm without feedback.
//! The timer `t` starts at 1 and advances with every feedback. Each machine breaks exact ties by
//! its own random order of arms: two machines with the same order would propose the same arm
//! forever.

use rand::seq::SliceRandom;
use smallvec::{SmallVec, smallvec};

use dueling_bandits::parameters::require;
use dueling_bandits::{InFlight, InvalidPolicy, MAX_RANKERS, Outcome, step_rng};

/// The default of [`ALPHA`], as in the experiments of later papers.
pub const DEFAULT_ALPHA: f64 = 3.0;

pub fn validate_alpha(alpha: f64) -> Result<(), InvalidPolicy> {
    require(alpha.is_finite() && alpha >= 0.0, "alpha", alpha, "a finite number of at least 0")
}

/// Separates the orders of arms from everything else that is drawn from the seed.
const ORDER_STREAM: u64 = 0x6f72_6465;

/// The reward of the second ranker in halves: 0, 1 or 2. The reward of the first is 2 minus this.
/// `None` for an outcome without information.
pub fn second_reward(outcome: Outcome) -> Option<u64> {
    match outcome.half_wins() {
        (0, 0) => None,
        (_, second) => Some(u64::from(second)),
    }
}

/// The `number`-th random order of `rankers` arms in an experiment.
pub fn order(rankers: usize, seed: u64, number: u64) -> Vec<u16> {
    let mut order: Vec<u16> = (0..rankers as u16).collect();
    order.shuffle(&mut step_rng(seed ^ ORDER_STREAM, number));
    order
}

/// Feedback of one machine since its last reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    plays: Vec<u64>,
    /// Sums of rewards, in halves.
    half_rewards: Vec<u64>,
}

impl Machine {
    pub fn new(rankers: usize) -> Self {
        Self { plays: vec![0; rankers], half_rewards: vec![0; rankers] }
    }

    pub fn plays(&self) -> &[u64] {
        &self.plays
    }

    /// `t - 1`: the number of all feedbacks.
    pub fn total_plays(&self) -> u64 {
        self.plays.iter().sum()
    }

    /// Add `count` feedbacks on `arm`, whose rewards sum to `half_rewards` halves.
    pub fn feedback(&mut self, arm: usize, count: u64, half_rewards: u64) {
        self.plays[arm] += count;
        self.half_rewards[arm] += half_rewards;
    }

    /// The arm with the largest index; the first in `order` on a tie.
    ///
    /// `pending[i]` is the number of proposals of arm `i` that wait for feedback. They narrow the
    /// radius and advance the timer as if the feedback had arrived. They do not change the mean,
    /// which is 1 for an arm without feedback.
    pub fn advance(&self, alpha: f64, order: &[u16], pending: &[f64]) -> usize {
        let timer = 1.0 + self.total_plays() as f64 + pending.iter().sum::<f64>();
        let spread = (alpha + 2.0) * timer.ln() / 2.0;
        let mut best = (usize::from(order[0]), f64::NEG_INFINITY);
        for &arm in order {
            let arm = usize::from(arm);
            let index = self.index(arm, spread, pending[arm]);
            if index > best.1 {
                best = (arm, index);
            }
        }
        best.0
    }

    fn index(&self, arm: usize, spread: f64, pending: f64) -> f64 {
        let plays = self.plays[arm] as f64;
        if plays + pending == 0.0 {
            return f64::INFINITY;
        }
        let mean = if plays > 0.0 { self.half_rewards[arm] as f64 / (2.0 * plays) } else { 1.0 };
        mean + (spread / (plays + pending)).sqrt()
    }
}

/// One number per ranker, on the stack, so that selecting does not allocate.
pub type PerRanker = SmallVec<[f64; MAX_RANKERS]>;

/// For each ranker, the expected number of duels in flight in which it has one of the two roles.
/// Pairs in flight are unordered: ranker `i` of a pair `(i, j)` has the role with probability
/// `share(i, j)`.
pub fn pending(
    in_flight: &InFlight,
    rankers: usize,
    share: impl Fn(usize, usize) -> f64,
) -> PerRanker {
    let mut pending = smallvec![0.0; rankers];
    for (i, j, count) in in_flight.pairs() {
        let count = f64::from(count);
        let first = if i == j { 1.0 } else { share(i, j) };
        pending[i] += count * first;
        pending[j] += count * (1.0 - first);
    }
    pending
}

/// The arm with the most plays; the first one on a tie.
pub fn most(plays: impl IntoIterator<Item = u64>) -> usize {
    let mut best = (0, 0);
    for (arm, plays) in plays.into_iter().enumerate() {
        if plays > best.1 {
            best = (arm, plays);
        }
    }
    best.0
}
