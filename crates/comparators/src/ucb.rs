//! The singleton bandit machine of Sparring: UCB1 with a robustness parameter (Ailon, Karnin,
//! Joachims: "Reducing Dueling Bandits to Cardinal Bandits", ICML 2014, section 3).
//!
//! The index of an arm is `mean + sqrt((α+2) ln t / 2n)`, and infinite for an arm without feedback.
//! The timer `t` starts at 1 and advances with every feedback. Each machine breaks exact ties by
//! its own random order of arms: two machines with the same order would propose the same arm
//! forever.

use rand::seq::SliceRandom;

use dueling_bandits::{InFlight, step_rng};

/// Separates the orders of arms from everything else that is drawn from the seed.
const ORDER_STREAM: u64 = 0x6f72_6465;

/// Feedback of one machine.
#[derive(Debug)]
pub struct Machine {
    /// The arms in a random order, which breaks ties.
    order: Vec<u16>,
    plays: Vec<u64>,
    /// Sums of rewards, in halves.
    half_rewards: Vec<u64>,
}

impl Machine {
    /// The `number`-th machine of an experiment.
    pub fn new(rankers: usize, seed: u64, number: u64) -> Self {
        let mut order: Vec<u16> = (0..rankers as u16).collect();
        order.shuffle(&mut step_rng(seed ^ ORDER_STREAM, number));
        Self { order, plays: vec![0; rankers], half_rewards: vec![0; rankers] }
    }

    pub fn plays(&self) -> &[u64] {
        &self.plays
    }

    /// Add `count` feedbacks on `arm`, whose rewards sum to `half_rewards` halves.
    pub fn feedback(&mut self, arm: usize, count: u64, half_rewards: u64) {
        self.plays[arm] += count;
        self.half_rewards[arm] += half_rewards;
    }

    /// The arm with the largest index; the first in the machine's order on a tie.
    ///
    /// `pending[i]` is the number of proposals of arm `i` that wait for feedback. They narrow the
    /// radius and advance the timer as if the feedback had arrived. They do not change the mean,
    /// which is 1 for an arm without feedback.
    pub fn advance(&self, alpha: f64, pending: &[f64]) -> usize {
        let plays: u64 = self.plays.iter().sum();
        let timer = 1.0 + plays as f64 + pending.iter().sum::<f64>();
        let spread = (alpha + 2.0) * timer.ln() / 2.0;
        let mut best = (0, f64::NEG_INFINITY);
        for &arm in &self.order {
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

/// For each ranker, the expected number of duels in flight in which it has one of the two roles.
/// Pairs in flight are unordered: each ranker of a pair has the role with probability 1/2.
pub fn pending(in_flight: &InFlight, rankers: usize) -> Vec<f64> {
    let mut pending = vec![0.0; rankers];
    for (i, j, count) in in_flight.pairs() {
        pending[i] += f64::from(count) / 2.0;
        pending[j] += f64::from(count) / 2.0;
    }
    pending
}
