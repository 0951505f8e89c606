//! When a Copeland winner is certain: the stopping rule.
//!
//! # The rule
//!
//! A *truth* says of every pair whether one ranker beats the other by more than the margin, or
//! neither does. For every truth there is a *capital*: a weighted sum of products of the
//! e-processes ([`LeadEvidence`]) of null hypotheses that hold under that truth. It starts at 1 or
//! below and is a nonnegative supermartingale if the truth is the real one. Ranker `a` is certified
//! once, for every rival `j` and every truth in which `j` is a winner and `a` is not, the capital
//! is `1/δ` or more. If `a` is in fact no winner, then the capital of the real truth has reached
//! `1/δ`, which happens in at most a share `δ` of experiments (Ville), however often anybody looks.
//! A verdict is latched: once certified, for ever certified.
//!
//! # Notation
//!
//! `K` rankers, `n = K - 1`, margin `m`. Under a truth: `N(a)` are the rankers that `a` does not
//! beat, not even within the margin: `P(a beats y) ≤ 1/2 - m`. `L(j)` is the number of rankers that
//! `j` beats by more than the margin: `P(j beats x) ≥ 1/2 + m` (with `m = 0`: above 1/2).
//! `U(a) = n - |N(a)|`. `j*` is a ranker with the largest `L`. Ranker `a` is *wrong* if
//! `U(a) < L(j*)`: even if every pair within the margin goes its way, it is no Copeland winner.
//! With `m = 0` these are the rankers whose Copeland score is below the largest.
//! `S = {x : P(x beats j*) ≤ 1/2 - m}`.
//!
//! # The capital
//!
//! With `w = min(1/2, 1/n)`,
//!
//! ```text
//! Φ = b1 Σ_{a wrong} o(|N(a)|) Π_{y∈N(a)} E(a≻y)
//!   + b2 / n Σ_{x∈S} E(x≻j*)
//!   + b3 Σ_{a wrong} g(a) / h(a) Σ_{y∈N(a)\j*} E(a≻y)
//!   + b4 Π_{x∈S} (1 - w + w E(x≻j*))
//!   + b5 Σ_{a wrong} g(a) Π_{x∈S} (1 - w + w E(x≻j*)) Π_{y∈N(a)\j*} (1 - w + w E(a≻y))
//! ```
//!
//! In the last product the pair (a, j*) appears once, through `S`. All factors of a product belong
//! to distinct pairs, and each answer changes one pair; given all earlier answers of all pairs, its
//! factor has mean at most 1. So each product is a supermartingale, and so is `Φ`.
//!
//! # The weights
//!
//! Let `c_1 ≤ c_2 ≤ …` be the `|N|` of any set of rankers, in order. Each pair within the set adds
//! at least 1 to their sum if `m = 0`, so `c_1 + … + c_k ≥ k (k - 1) / 2` (Landau, "On dominance
//! relations and the structure of animal societies III", 1953).
//!
//! *Type I*: `j*` beats all others. Then it has `|N| = 0`, and the wrong ones satisfy `c_1 + … +
//! c_k ≥ k (k + 1) / 2`: the sequence is weakly majorized by 1, 2, 3, …. `o` is convex and
//! decreasing, so `Σ o ≤ o(1) + o(2) + o(3) + … ≤ 1` (Tomić, 1949; Weyl, 1949). With `o(1) = 0.93`,
//! `o(2) = 0.042`, `o(c) = 0.028 · 2^(2-c)` for `c ≥ 3`. For three rankers the only sequence is 1,
//! 2, so `o(2) = 0.07`. `g = 1/n`, `h = n`.
//!
//! *Type II*: no ranker beats all others. A wrong ranker has `|N| ≥ 2`. With `o(2) = 0.29` and
//! `o(c) = 0.08 · 2^(3-c)` for `c ≥ 3` the largest sum over all sequences is 0.99: dynamic
//! programming over the first 20 rankers shows it, and `c_i ≥ (i - 1) / 2` bounds all others by
//! 0.0025. For three rankers at most two are wrong, so `o(2) = 0.5`. A wrong ranker whose score is
//! one below that of `j*` is *near*, any other *far*. At most `2c` wrong rankers have `|N| ≤ c`, so
//! at most `min(2c, n)` are near. `g = 0.8 / min(2c, n)` for a near one, `0.2 / n` for a far one,
//! `h = min(n, c)`.
//!
//! With a margin a pair within it counts for neither ranker, and the counting fails: `o = 1/n` for
//! every `c` and `n` in place of `min(2c, n)`.
//!
//! All weights together are at most `b1 + … + b5 = 1`, and `h ≥ |N(a) \ j*|`, so `Φ` starts at 1 or
//! below.
//!
//! For two rankers the only truth is that `j` beats `a`, and `Φ = E(a≻j)`.
//!
//! # The minimum over truths
//!
//! For given `a` and `j` a truth enters through three numbers: whether `j` is in `N(a)`, `v = |N(a)
//! \ j|`, and `u`, the number of rankers other than `a` that `j` beats. Each term is bounded by its
//! own minimum over the sets of that size: products and sums of the smallest elements; a product of
//! factors `1 - w + w E` also takes all factors below 1. Only the first term does not grow with
//! `u`, so the smallest possible `u` is enough: once where `a` is near, and one more where it is
//! far. An exact tie of `a` and `j` (margin 0) needs one more `u` too; the far weight, which is the
//! smaller one, covers it. The bound is never above the exact minimum. Sorting dominates the cost:
//! O(K log K) a rival.

use crate::Tally;
use crate::evidence::lead::LeadEvidence;

/// Weights of the five terms where one ranker beats all others.
const TYPE_I: [f64; 5] = [0.7, 0.15, 0.05, 0.06, 0.04];
/// Weights of the five terms where none does.
const TYPE_II: [f64; 5] = [0.2, 0.3, 0.2, 0.2, 0.1];
/// Share of a near ranker, and of a far one, in type II.
const NEAR: f64 = 0.8;
const FAR: f64 = 0.2;
/// `ln E` is cut off here: it is far beyond what any verdict needs, and products stay finite.
const MOST_LN: f64 = 40.0;
/// Largest exponent whose exponential is computed.
const MOST_EXPONENT: f64 = 300.0;
/// `ln(1 - w + w E)` is `ln w + ln E` beyond this, to all digits that matter.
const DOMINATED: f64 = 30.0;

/// `ln E(x≻y)` of every ordered pair, kept up to date with the win counts.
#[derive(Debug, Clone, PartialEq)]
pub struct PairEvidence {
    mixture: LeadEvidence,
    rankers: usize,
    ln: Vec<f64>,
}

impl PairEvidence {
    /// Of the counts in `tally`, for a margin in [0, 0.49].
    pub fn new(tally: &Tally, margin: f64) -> Self {
        let rankers = tally.rankers();
        let mut evidence =
            Self { mixture: LeadEvidence::over(margin), rankers, ln: vec![0.0; rankers * rankers] };
        for x in 0..rankers {
            for y in 0..x {
                evidence.update(tally, x, y);
            }
        }
        evidence
    }

    /// The counts of the pair (x, y) have changed. O(1).
    pub fn update(&mut self, tally: &Tally, x: usize, y: usize) {
        if x != y {
            let (wins, losses) = (tally.wins(x, y), tally.wins(y, x));
            self.ln[x * self.rankers + y] = self.mixture.ln(wins, losses);
            self.ln[y * self.rankers + x] = self.mixture.ln(losses, wins);
        }
    }

    /// `ln E(x≻y)`; 0 before the first duel of the pair.
    pub fn ln(&self, x: usize, y: usize) -> f64 {
        self.ln[x * self.rankers + y]
    }

    /// `K`.
    pub fn rankers(&self) -> usize {
        self.rankers
    }
}

/// The stopping rule for one number of rankers, error and margin.
#[derive(Debug, Clone)]
pub struct CopelandRule {
    rankers: usize,
    /// `ln(1/δ)`.
    threshold: f64,
    margin: bool,
    /// `w`, and its logarithm.
    stake: (f64, f64),
    /// `o` by `|N(a)|`, for type I and type II.
    wrong_weight: [Vec<f64>; 2],
}

/// Rivals' evidence in order, and what the capital needs of its beginnings.
struct Beginnings {
    /// `ln` of the product of the `k` smallest `E`.
    ln_product: Vec<f64>,
    /// Sum of the `k` smallest `E`.
    sum: Vec<f64>,
    /// `ln` of the product of the `k` smallest factors `1 - w + w E` and of all that are below 1.
    ln_staked: Vec<f64>,
}

impl CopelandRule {
    /// A verdict that is wrong in at most a share `error` of experiments. `rankers` is 2 or more,
    /// `error` in (0, 1). With a `margin` of 0 the verdict is "a Copeland winner"; with one above 0
    /// it is "a Copeland winner if pairs within the margin of 1/2 may go either way".
    pub fn new(rankers: usize, error: f64, margin: f64) -> Self {
        let others = (rankers - 1) as f64;
        let stake = (1.0 / others).min(0.5);
        let margin = margin > 0.0;
        let weights = |weight: fn(usize, usize) -> f64| {
            let of = |losses| if margin { 1.0 / others } else { weight(rankers, losses) };
            (0..=rankers).map(of).collect()
        };
        Self {
            rankers,
            threshold: -libm::log(error),
            margin,
            stake: (stake, libm::log(stake)),
            wrong_weight: [weights(type_one_weight), weights(type_two_weight)],
        }
    }

    /// `ln(1/δ)`: what [`CopelandRule::ln_capital`] must reach against every rival.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The rival against which the evidence for `a` falls furthest short; `None` if `a` is
    /// certified. O(K² log K).
    pub fn weakest_rival(&self, evidence: &PairEvidence, a: usize) -> Option<usize> {
        let rivals = (0..self.rankers).filter(|&j| j != a);
        let capitals = rivals.map(|j| (j, self.ln_capital(evidence, a, j)));
        let short = capitals.filter(|&(_, capital)| capital < self.threshold);
        short.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(j, _)| j)
    }

    /// Whether `a` is certified. `blocking` is a rival that was short of evidence before: it is
    /// looked at first, and replaced by another that is. O(K log K) while the same rival blocks.
    pub fn certifies(&self, evidence: &PairEvidence, a: usize, blocking: &mut usize) -> bool {
        let blocks = |j: usize| j != a && self.ln_capital(evidence, a, j) < self.threshold;
        if *blocking < self.rankers && blocks(*blocking) {
            return false;
        }
        match (0..self.rankers).find(|&j| blocks(j)) {
            Some(j) => *blocking = j,
            None => return true,
        }
        false
    }

    /// The logarithm of a lower bound of the capital over all truths in which `j` is a winner and
    /// `a` is not. `a` and `j` differ. O(K log K).
    pub fn ln_capital(&self, evidence: &PairEvidence, a: usize, j: usize) -> f64 {
        let capped = |x: usize, y: usize| evidence.ln(x, y).min(MOST_LN);
        let others = || (0..self.rankers).filter(|&x| x != a && x != j);
        let direct = capped(a, j);
        if self.rankers == 2 {
            return direct;
        }
        let rival = self.beginnings(others().map(|x| capped(x, j)).collect());
        let leader = self.beginnings(others().map(|y| capped(a, y)).collect());
        let count = self.rankers - 2;
        let one = (0..=count).map(|v| self.type_one(direct, &rival, &leader, v));
        let beaten = (1..=count).flat_map(|v| {
            let near = self.type_two(Some(direct), &rival, &leader, count - v, v, true);
            [near, self.type_two(Some(direct), &rival, &leader, count - v + 1, v, false)]
        });
        let unbeaten = (2..=count).flat_map(|v| {
            let u = count + 2 - v;
            let near = self.type_two(None, &rival, &leader, u, v, true);
            let far = (u < count).then(|| self.type_two(None, &rival, &leader, u + 1, v, false));
            [Some(near), far].into_iter().flatten()
        });
        libm::log(one.chain(beaten).chain(unbeaten).fold(f64::INFINITY, f64::min))
    }

    /// `j` beats all others: `a`, and `v` more are not beaten by `a`.
    fn type_one(&self, direct: f64, rival: &Beginnings, leader: &Beginnings, v: usize) -> f64 {
        let others = (self.rankers - 1) as f64;
        let all = self.rankers - 2;
        let staked = self.ln_staked(direct) + rival.ln_staked[all];
        let [b1, b2, b3, b4, b5] = TYPE_I;
        b1 * self.wrong_weight[0][v + 1] * exp(direct + leader.ln_product[v])
            + b2 / others * (exp(direct) + rival.sum[all])
            + b3 / (others * others) * leader.sum[v]
            + b4 * exp(staked)
            + b5 / others * exp(staked + leader.ln_staked[v])
    }

    /// No ranker beats all others: `j` beats `u` rankers other than `a`, which does not beat `v`
    /// other than `j`; `direct` is `ln E(a≻j)` where `a` does not beat `j` either.
    fn type_two(
        &self,
        direct: Option<f64>,
        rival: &Beginnings,
        leader: &Beginnings,
        u: usize,
        v: usize,
        near: bool,
    ) -> f64 {
        let others = (self.rankers - 1) as f64;
        let losses = v + usize::from(direct.is_some());
        let most_near = if self.margin { others } else { others.min(2.0 * losses as f64) };
        let share = if near { NEAR / most_near } else { FAR / others };
        let staked = rival.ln_staked[u] + direct.map_or(0.0, |direct| self.ln_staked(direct));
        let [b1, b2, b3, b4, b5] = TYPE_II;
        b1 * self.wrong_weight[1][losses] * exp(direct.unwrap_or(0.0) + leader.ln_product[v])
            + b2 / others * (rival.sum[u] + direct.map_or(0.0, exp))
            + b3 * share / others.min(losses as f64) * leader.sum[v]
            + b4 * exp(staked)
            + b5 * share * exp(staked + leader.ln_staked[v])
    }

    fn beginnings(&self, mut ln: Vec<f64>) -> Beginnings {
        ln.sort_unstable_by(f64::total_cmp);
        let below_one = ln.partition_point(|&value| value < 0.0);
        let staked: Vec<f64> = ln.iter().map(|&value| self.ln_staked(value)).collect();
        let mut ln_staked = sums(staked.iter().copied());
        let all_below_one = ln_staked[below_one];
        ln_staked[..below_one].fill(all_below_one);
        Beginnings {
            ln_product: sums(ln.iter().copied()),
            sum: sums(ln.iter().map(|&value| exp(value))),
            ln_staked,
        }
    }

    /// `ln(1 - w + w E)`.
    fn ln_staked(&self, ln: f64) -> f64 {
        let (stake, ln_stake) = self.stake;
        if ln > DOMINATED { ln + ln_stake } else { libm::log(1.0 - stake + stake * exp(ln)) }
    }
}

/// Sums of the first 0, 1, 2, … values.
fn sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut total = 0.0;
    let mut sums = vec![total];
    for value in values {
        total += value;
        sums.push(total);
    }
    sums
}

fn exp(exponent: f64) -> f64 {
    libm::exp(exponent.min(MOST_EXPONENT))
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

/// `o(losses)` of type II without a margin; `losses` is 2 or more.
fn type_two_weight(rankers: usize, losses: usize) -> f64 {
    match losses {
        0 | 1 => 0.0,
        2 if rankers == 3 => 0.5,
        2 => 0.29,
        _ => 0.08 * halvings(losses - 3),
    }
}

/// `2^-count`.
fn halvings(count: usize) -> f64 {
    libm::ldexp(1.0, -i32::try_from(count).unwrap_or(i32::MAX))
}
