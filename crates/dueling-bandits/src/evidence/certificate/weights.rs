//! The weights of the terms of a capital, and why the capital starts at 1 or below.
//!
//! The notation is that of [`certificate`](super).
//!
//! Let `c_1 ≤ c_2 ≤ …` be the `|N|` of any set of rankers, in order. Each pair within the set adds
//! at least 1 to their sum if `m = 0`, so `c_1 + … + c_k ≥ k (k - 1) / 2` (Landau, "On dominance
//! relations and the structure of animal societies III", 1953).
//!
//! *Type I*: `j*` beats all others. Then it has `|N| = 0`, and the wrong ones satisfy `c_1 + … +
//! c_k ≥ k (k + 1) / 2`: the sequence is weakly majorized by 1, 2, 3, …. `o` is convex and
//! decreasing, so `Σ o ≤ o(1) + o(2) + o(3) + … ≤ 1` (Tomić, 1949; Weyl, 1949). With `o(1) = 0.93`,
//! `o(2) = 0.042`, `o(c) = 0.028 · 2^(2-c)` for `c ≥ 3`. For three rankers the sequence is 1,
//! 2, or 2, 2 if the two wrong ones are even. So `o(2) = 0.07`: the sums are 1 and 0.14. `g = 1/n`,
//! `h = n`.
//!
//! *Type II*: no ranker beats all others. A wrong ranker whose score is one below that of `j*` is
//! *near*, any other *far*. All near ones have the same `c = |N|`, and `j*` has `c - 1`. If there
//! are `r` of them, then `c - 1 + r c ≥ r (r + 1) / 2`, which does not hold for `r = 2c`: there are
//! at most `min(2c - 1, n)`. So `o = g = 0.8 / min(2c - 1, n)` for a near one. At most `2c + 1`
//! rankers have `|N| ≤ c`, a winner among them, so at most `min(2c, n)` far ones have `|N| = c`. A
//! far one has `c ≥ 3`: `o = 0.2 · 2^(2-c) / min(2c, n)` and `g = 0.2 / n`. The sums of `o` and of
//! `g` are at most 1. For three rankers all wrong ones are near, and 0.8 becomes 1. `h = min(n, c)`.
//!
//! With a margin a pair within it counts for neither ranker, and the counting fails: `o = 1/n`, and
//! `g = 0.8 / n` for a near one and `0.2 / n` for a far one.
//!
//! All weights together are at most `b1 + … + b5 + b6 = 1`, and `h ≥ |N(a) \ j*|`, so `Φ` starts at 1 or
//! below. `S` is not empty: a ranker that loses to all others is no winner.

/// Weights of the five terms where one ranker beats all others, without a margin and without
/// refuters. Most is in the first one, which alone decides where the winner has to beat each rival.
const TYPE_I: [f64; 5] = [0.82, 0.15, 0.01, 0.01, 0.01];
/// The same with a margin.
const TYPE_I_MARGIN: [f64; 5] = [0.7, 0.26, 0.02, 0.01, 0.01];
/// Beside a capital that follows refuters, and the weight of that one. Without a margin the first
/// term needs less evidence than that capital, because `o(1)` is large.
const TYPE_I_FOLLOWING: ([f64; 5], f64) = ([0.76, 0.03, 0.004, 0.003, 0.003], 0.2);
/// With a margin `o` is small, and that capital needs less.
const TYPE_I_FOLLOWING_MARGIN: ([f64; 5], f64) = ([0.1, 0.045, 0.003, 0.001, 0.001], 0.85);
/// Weights of the five terms where none does.
pub(super) const TYPE_II: [f64; 5] = [0.3, 0.2, 0.36, 0.07, 0.07];
/// Share of a near ranker, and of a far one, in type II.
pub(super) const NEAR: f64 = 0.8;
const FAR: f64 = 0.2;
/// The weights for one number of rankers, with or without a margin.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// Of the five terms in type I in a rule without refuters.
    pub(super) plain: [f64; 5],
    /// The same in this rule, and of the capital that follows refuters.
    pub(super) one: [f64; 5],
    pub(super) followed: f64,
    /// `o` by `|N(a)|` in type I.
    alone: Vec<f64>,
    /// `o` and `g` by `|N(a)|` in type II, of near and of far rankers.
    near: Vec<Shares>,
    far: Vec<Shares>,
}

/// The weights of a wrong ranker in type II.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    pub(super) o: f64,
    pub(super) g: f64,
    /// `b3 g / h`.
    pub(super) third: f64,
}

impl Weights {
    pub(super) fn new(rankers: usize, margin: bool, follows: bool) -> Self {
        let others = (rankers - 1) as f64;
        let type_one =
            |losses| if margin { 1.0 / others } else { type_one_weight(rankers, losses) };
        let type_two = |near: bool| {
            let of = |losses| match margin {
                true => (1.0 / others, if near { NEAR } else { FAR } / others),
                false => type_two_shares(rankers, losses, near),
            };
            let shares = |losses| {
                let (o, g) = of(losses);
                Shares { o, g, third: TYPE_II[2] * g / others.min(losses.max(1) as f64) }
            };
            (0..=rankers).map(shares).collect()
        };
        let plain = if margin { TYPE_I_MARGIN } else { TYPE_I };
        let (one, followed) = match (follows, margin) {
            (false, _) => (plain, 0.0),
            (true, false) => TYPE_I_FOLLOWING,
            (true, true) => TYPE_I_FOLLOWING_MARGIN,
        };
        Self {
            plain,
            one,
            followed,
            alone: (0..=rankers).map(type_one).collect(),
            near: type_two(true),
            far: type_two(false),
        }
    }

    /// `o` of a wrong ranker with `losses` in type I.
    pub(super) fn type_one(&self, losses: usize) -> f64 {
        self.alone[losses]
    }

    /// The weights of a wrong ranker with `losses` in type II, near or far.
    pub(super) fn type_two(&self, losses: usize, near: bool) -> Shares {
        if near { self.near[losses] } else { self.far[losses] }
    }
}

/// `o(losses)` of the capital `Ψ` against the claim that a ranker beats all others.
pub(super) fn condorcet_weight(rankers: usize, losses: usize, margin: bool) -> f64 {
    match losses {
        _ if margin => 1.0 / rankers as f64,
        1 => 0.3,
        _ => 0.02 * halvings(losses - 2),
    }
}

/// `o(losses)` of type I without a margin; `losses` is 1 or more.
fn type_one_weight(rankers: usize, losses: usize) -> f64 {
    match losses {
        0 => 0.0,
        1 => 0.93,
        2 if rankers == 3 => 0.07,
        2 => 0.042,
        _ => 0.028 * halvings(losses - 2),
    }
}

/// `o` and `g` of type II without a margin; `losses` is 2 or more.
fn type_two_shares(rankers: usize, losses: usize, near: bool) -> (f64, f64) {
    let others = rankers as f64 - 1.0;
    let count = losses as f64;
    match losses {
        0 | 1 => (0.0, 0.0),
        // none with two losses is far
        _ if near || losses == 2 => {
            let near = if rankers == 3 { 1.0 } else { NEAR };
            let share = near / others.min(2.0 * count - 1.0);
            (share, share)
        }
        _ => (FAR * halvings(losses - 2) / others.min(2.0 * count), FAR / others),
    }
}

/// `2^-count`.
fn halvings(count: usize) -> f64 {
    libm::ldexp(1.0, -i32::try_from(count).unwrap_or(i32::MAX))
}
