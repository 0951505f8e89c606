//! Experiments that orders decide.
//!
//! - [`shop`]: searchers who click and buy.
//! - [`nulls`]: even truths, and how often a ranker is proven.
//! - `worlds`: those in which people are of a few kinds, as a table.
//! - `homes`: an experiment as the service runs it, whose pairs the policy chooses.
//! - [`power`]: pages to the verdict, by orders, by clicks and with two arms.
//! - [`lift`]: how wide the interval of the lift is, and how often it misses.

use dueling_bandits::evidence::Score;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::Levels;

pub(super) mod homes;
pub mod lift;
pub mod nulls;
pub mod power;
pub mod shop;
mod worlds;

/// An experiment with an even truth: what was ever proven, and the sum of so many scores.
#[derive(Default, Clone, Copy)]
struct Tried {
    pub proven: [bool; 2],
    pub undoubted: bool,
    pub drifted: bool,
    pub sum: f64,
    pub count: u64,
}

/// The evidence of a pair in both directions, looked at after every answer.
struct Sides {
    evidence: LeadEvidence,
    threshold: f64,
    levels: [Levels; 2],
}

impl Sides {
    fn new(margin: f64, error: f64) -> Self {
        let (evidence, threshold) = (LeadEvidence::over(margin), -libm::log(error));
        Self { evidence, threshold, levels: Default::default() }
    }

    /// An answer of the pair; whether its first ranker is proven now, and its second one.
    fn count(&mut self, score: Score, won: bool) -> [bool; 2] {
        let level = dueling_bandits::evidence::scores::WEIGHTS
            .iter()
            .position(|&weight| weight == score.weight());
        self.levels[usize::from(!won)][level.unwrap_or_default()] += 1;
        let [won, lost] = &self.levels;
        [(won, lost), (lost, won)]
            .map(|(x, y)| self.evidence.ln_with_scores(0.0, 0.0, x, y) >= self.threshold)
    }
}

/// A share with its 95 % interval of Wilson ("Probable inference, the law of succession, and
/// statistical inference", JASA 1927).
pub fn wilson(hits: u64, all: u64) -> [f64; 3] {
    let (n, z) = (all as f64, 1.96);
    let p = hits as f64 / n;
    let centre = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    [p, ((centre - half) / scale).max(0.0), (centre + half) / scale]
}
