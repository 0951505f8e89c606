//! Time-uniform confidence sequences of a pair's preference. The intervals hold at all numbers of
//! duels at once: whichever policy chose the duels, and whenever somebody looks or stops.
//!
//! The method is Ville's method of mixtures, with a uniform mixture. For a pair with `W` wins and
//! `L` losses so far, the likelihood ratio of the mixture against `p` is
//!
//! `M(p) = B(1 + W, 1 + L) / (p^W (1 - p)^L)`.
//!
//! Under the true `p` it is a nonnegative martingale that starts at 1, so `Pr(ever M(p) ≥ 1/α) ≤ α`
//! (Ville, "Étude critique de la notion de collectif", 1939; Robbins, "Statistical methods related
//! to the law of the iterated logarithm", Annals of Mathematical Statistics 1970). The interval `{p
//! : M(p) < 1/α}` therefore contains the true `p` at all times at once with probability `1 - α`.
//! Only a pair's own duels move its martingale, so the way they were chosen does not matter.
//!
//! Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
//! sequences", Annals of Statistics 2021, has the general theory. Kaufmann and Koolen, "Mixture
//! martingales revisited with applications to sequential tests and confidence intervals", JMLR
//! 2021, has its use for bandits, where arms are chosen adaptively.
//!
//! Half wins (ties under the rule `half`) are covered: `exp` is convex, so an outcome in [0, 1]
//! with mean `p` makes `M(p)` a supermartingale (Waudby-Smith and Ramdas, "Estimating means of
//! bounded random variables by betting", JRSS B 2024).
//!
//! The pairs share the error `δ` equally, `α = δ / (K (K - 1) / 2)`. All intervals of all pairs
//! then hold at all times with probability `1 - δ`.
//!
//! # Added rankers
//!
//! The pairs of the `K` initial rankers keep their level forever, so that a decided pair stays
//! decided. These pairs use up all of `δ`. However, a pair that is not exactly even is decided
//! *wrongly* with only about half of its `α`:
//!
//! - Let `p ≤ 1/2` and `M = (M₊ + M₋) / 2`, the halves of the mixture above and below 1/2.
//! - `M₊(1/2)` is a supermartingale under `p`, and `M₋(1/2) ≤ 1` while `W ≥ L`.
//! - A wrong decision means `M(1/2) ≥ 1/α` with `W > L`, hence `M₊ ≥ 2/α - 1`. This has probability
//!   `α / (2 - α)` at most.
//!
//! All initial pairs together are decided wrongly with probability `δ / (2 - δ)` at most. The pairs
//! of added rankers share the rest of `δ`: the `m`-th added ranker has `K + m - 1` pairs with all
//! rankers before it, at `α = δ (1 - δ) / (m (m + 1) (K + m - 1))` each. As `Σ 1 / (m (m + 1)) =
//! 1`, they add `δ (1 - δ) / (2 - δ)`, whatever their number and time. The sum is `δ`. A retired
//! ranker does not give its share back.
//!
//! For pairs that are exactly even, where both decisions are wrong, and for the intervals
//! themselves, the sum is below `2 δ`.

use crate::math::mixture::{evidence_against_half, ln_likelihood, ln_mixture};

/// Most halvings of an interval of length 1: after these, an `f64` cannot separate its ends.
const HALVINGS: u32 = 54;

/// The intervals of one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequence {
    /// `ln(1/α)`.
    threshold: f64,
}

impl Sequence {
    /// One interval that holds at all times with probability `1 - alpha`; `alpha` is in (0, 1).
    pub fn of_level(alpha: f64) -> Self {
        Self { threshold: -libm::log(alpha) }
    }

    /// The intervals of all pairs of `rankers` (2 or more), which hold together at all times with
    /// probability `confidence`, in (0, 1).
    pub fn for_pairs(rankers: usize, confidence: f64) -> Self {
        let pairs = (rankers * (rankers - 1) / 2) as f64;
        Self::of_level((1.0 - confidence) / pairs)
    }

    /// The intervals of the pairs of the `number`-th ranker (from 1) added to `initial_rankers`,
    /// with all rankers before it.
    fn for_added_ranker(initial_rankers: usize, number: usize, confidence: f64) -> Self {
        let (error, number) = (1.0 - confidence, number as f64);
        let pairs = initial_rankers as f64 + number - 1.0;
        Self::of_level(error * (1.0 - error) / (number * (number + 1.0) * pairs))
    }

    /// `ln(1/α)`: the evidence that it takes to exclude a value.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Whether 1/2 is excluded. The ranker with more wins is then certainly the better one.
    pub fn excludes_half(&self, wins: f64, losses: f64) -> bool {
        // the evidence is at most `2^(W + L)`, and with many rankers most pairs have few outcomes
        (wins + losses) * std::f64::consts::LN_2 >= self.threshold
            && evidence_against_half(wins, losses) >= self.threshold
    }

    /// The interval of `P(win)` after these wins and losses, which may be halves; `(0, 1)` before
    /// the first.
    pub fn interval(&self, wins: f64, losses: f64) -> (f64, f64) {
        let mixture = ln_mixture(wins, losses);
        let excluded = |p: f64| mixture - ln_likelihood(p, wins, losses) >= self.threshold;
        let plays = wins + losses;
        let peak = if plays > 0.0 { wins / plays } else { 0.5 };
        (edge(0.0, peak, excluded), edge(1.0, peak, excluded))
    }
}

/// The intervals of all pairs at one confidence, where rankers can be added.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequences {
    /// For each ranker, the intervals of its pairs with all rankers before it.
    by_later: Vec<Sequence>,
}

impl Sequences {
    /// The intervals for `rankers` rankers, of which the first `initial_rankers` (2 or more) were
    /// not added later. With probability `confidence`, in (0, 1), no pair is ever decided wrongly.
    pub fn new(initial_rankers: usize, rankers: usize, confidence: f64) -> Self {
        let mut by_later = vec![Sequence::for_pairs(initial_rankers, confidence); initial_rankers];
        by_later.extend(
            (1..=rankers - initial_rankers)
                .map(|number| Sequence::for_added_ranker(initial_rankers, number, confidence)),
        );
        Self { by_later }
    }

    /// The intervals of the pair `{i, j}`.
    pub fn of(&self, i: usize, j: usize) -> Sequence {
        self.by_later[i.max(j)]
    }
}

/// The limit of the excluded values between `end` and `inside`; `end` where no value is excluded.
fn edge(end: f64, inside: f64, excluded: impl Fn(f64) -> bool) -> f64 {
    if !excluded(end) {
        return end;
    }
    let (mut out, mut kept) = (end, inside);
    for _ in 0..HALVINGS {
        let middle = (out + kept) / 2.0;
        if excluded(middle) {
            out = middle;
        } else {
            kept = middle;
        }
    }
    // the outer end, so that the interval is not cut short
    out
}
