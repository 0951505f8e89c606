//! Time-uniform confidence sequences of a pair's preference: intervals that all hold together, at
//! every number of duels, however the policy chose them and whenever somebody looks or stops.
//!
//! Ville's method of mixtures with a uniform mixture. Of a pair with `W` wins and `L` losses so
//! far, the likelihood of the mixture against the one of `p` is
//!
//! `M(p) = B(1 + W, 1 + L) / (p^W (1 - p)^L)`.
//!
//! Under the true `p` it is a nonnegative martingale that starts at 1, so `Pr(ever M(p) ≥ 1/α) ≤ α`
//! (Ville, "Étude critique de la notion de collectif", 1939; Robbins, "Statistical methods related
//! to the law of the iterated logarithm", Annals of Mathematical Statistics 1970). The interval `{p
//! : M(p) < 1/α}` therefore holds the true `p` at all times at once with probability `1 - α`;
//! Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
//! sequences", Annals of Statistics 2021, has the general theory, and Kaufmann and Koolen, "Mixture
//! martingales revisited with applications to sequential tests and confidence intervals", JMLR
//! 2021, the use for bandits, where arms are drawn adaptively. Only a pair's own duels move its
//! martingale, so it does not matter how they were chosen.
//!
//! Half wins (ties under the rule `half`) are covered: `exp` is convex, so an outcome in [0, 1]
//! with mean `p` makes `M(p)` a supermartingale (Waudby-Smith and Ramdas, "Estimating means of
//! bounded random variables by betting", JRSS B 2024).
//!
//! Over all pairs of an experiment the error `δ` is shared equally, `α = δ / (K (K - 1) / 2)`: then
//! all intervals of all pairs hold at all times with probability `1 - δ`.
//!
//! # Rankers that come later
//!
//! The pairs of the `K` rankers that an experiment began with keep their level for ever, so that
//! what is settled stays settled, and they have spent all of `δ`. Yet a pair that is not exactly
//! even is settled *the wrong way round* with about half of its `α` only. Let `p ≤ 1/2` and `M =
//! (M₊ + M₋) / 2`, the halves of the mixture above and below 1/2. `M₊(1/2)` is a supermartingale
//! under `p`, and `M₋(1/2) ≤ 1` while `W ≥ L`; so who settles it for the worse one, `M(1/2) ≥ 1/α`
//! with `W > L`, has `M₊ ≥ 2/α - 1`, which happens with probability `α / (2 - α)` at most. All
//! first pairs together are settled wrongly with probability `δ / (2 - δ)` at most, and what is
//! left of `δ` is shared among the pairs of those who come: the `m`-th one's `K + m - 1` pairs with
//! all before it have `α = δ (1 - δ) / (m (m + 1) (K + m - 1))` each. As `Σ 1 / (m (m + 1)) = 1`,
//! they add `δ (1 - δ) / (2 - δ)`, however many come and whenever: the whole is `δ`. Who goes frees
//! nothing.
//!
//! For pairs that are exactly even, where either way round is wrong, and for the intervals
//! themselves, the sum is below `2 δ`.

use crate::math::mixture::{evidence_against_half, ln_likelihood, ln_mixture};

/// Halvings of an interval of length 1 at most: beyond these an `f64` does not tell two ends apart.
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

    /// The intervals of the pairs that the `number`-th ranker (from 1) to join `initial_rankers`
    /// has with all before it.
    fn for_newcomer(initial_rankers: usize, number: usize, confidence: f64) -> Self {
        let (error, number) = (1.0 - confidence, number as f64);
        let pairs = initial_rankers as f64 + number - 1.0;
        Self::of_level(error * (1.0 - error) / (number * (number + 1.0) * pairs))
    }

    /// `ln(1/α)`: the evidence that it takes to exclude a value.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Whether 1/2 is excluded: it is then certain which of the two is better, the one with more
    /// wins.
    pub fn excludes_half(&self, wins: f64, losses: f64) -> bool {
        evidence_against_half(wins, losses) >= self.threshold
    }

    /// The interval of `P(win)` after so many wins and losses, which may be halves. `(0, 1)` before
    /// the first.
    pub fn interval(&self, wins: f64, losses: f64) -> (f64, f64) {
        let mixture = ln_mixture(wins, losses);
        let excluded = |p: f64| mixture - ln_likelihood(p, wins, losses) >= self.threshold;
        let plays = wins + losses;
        let peak = if plays > 0.0 { wins / plays } else { 0.5 };
        (edge(0.0, peak, excluded), edge(1.0, peak, excluded))
    }
}

/// The intervals of all pairs of an experiment whose rankers come and go, at one confidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequences {
    /// Of each ranker: those of its pairs with the ones before it.
    by_later: Vec<Sequence>,
}

impl Sequences {
    /// Of `rankers`, the first `initial_rankers` (2 or more) of which it began with. No pair is
    /// ever settled the wrong way round, with probability `confidence` in (0, 1).
    pub fn new(initial_rankers: usize, rankers: usize, confidence: f64) -> Self {
        let mut by_later = vec![Sequence::for_pairs(initial_rankers, confidence); initial_rankers];
        by_later.extend(
            (1..=rankers - initial_rankers)
                .map(|number| Sequence::for_newcomer(initial_rankers, number, confidence)),
        );
        Self { by_later }
    }

    /// That of the pair `{i, j}`.
    pub fn of(&self, i: usize, j: usize) -> Sequence {
        self.by_later[i.max(j)]
    }
}

/// Where between `end` and `inside` the excluded values stop; `end` itself where nothing is
/// excluded on that side.
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
    // the outer one: nothing that belongs to the interval is cut off
    out
}
