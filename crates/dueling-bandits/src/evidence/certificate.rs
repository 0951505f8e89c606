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
//! Φ = b1 Σ_{a wrong} o(a) Π_{y∈N(a)} E(a≻y)
//!   + b2 M
//!   + b3 Σ_{a wrong} g(a) / h(a) Σ_{y∈N(a)\j*} E(a≻y)
//!   + b4 Π_{x∈S} (1 - w + w E(x≻j*))
//!   + b5 Σ_{a wrong} g(a) Π_{x∈S} (1 - w + w E(x≻j*)) Π_{y∈N(a)\j*} (1 - w + w E(a≻y))
//!   + b6 X(j*)                               (in type I)
//! ```
//!
//! where `M` is `1/n Σ_{x∈S} E(x≻j*)` in type I below and the mean of `E(x≻j*)` over `S` in type II.
//!
//! In the last product the pair (a, j*) appears once, through `S`. All factors of a product belong
//! to distinct pairs, and each answer changes one pair; given all earlier answers of all pairs, its
//! factor has mean at most 1. So each product is a supermartingale, and so is `Φ`. `X(j*)` is the
//! capital that follows the refuters of `j*`: [`refuters`](super::refuters) has it, with the proof.
//!
//! # The weights
//!
//! `o`, `g` and `h` are chosen so that `Φ` starts at 1 or below. They are in the module `weights`,
//! with the proof.
//!
//! For two rankers the only truth is that `j` beats `a`, and `Φ = E(a≻j)`.
//!
//! # A Condorcet winner
//!
//! The claim "`a` beats every other ranker" is wrong in more truths: in those of type I with
//! another `j*`, whose capital is the one above, and in all truths of type II. There every ranker
//! has `|N| ≥ 1`, and at most `2c + 1` rankers have `|N| ≤ c`, since each pair among them adds at
//! least 1 to the sum of their `|N|`. The capital of such a truth is
//!
//! ```text
//! Ψ = Σ_a o(|N(a)|) Π_{y∈N(a)} E(a≻y)      with o(1) = 0.3, o(c) = 0.02 · 2^(2-c) for c ≥ 2.
//! ```
//!
//! By parts, `Σ_a o(|N(a)|) ≤ 3 o(1) + 2 (o(2) + o(3) + …) ≤ 0.9 + 0.08`. With a margin the claim
//! is that no ranker beats `a` by more than the margin; the counting fails, and `o = 1/K`. The
//! smallest `Ψ` of a truth with a nonempty `N(a)` has the smallest elements, as above.
//!
//! # The minimum over truths
//!
//! For given `a` and `j` a truth enters through three numbers: whether `j` is in `N(a)`, `v = |N(a)
//! \ j|`, and `u`, the number of rankers other than `a` that `j` beats. Each term is bounded by its
//! own minimum over the sets of that size: products and sums of the smallest elements; a product of
//! factors `1 - w + w E` also takes all factors below 1; for the mean over `S`, the smallest mean of
//! any size from `u` on. No term decreases with `u`, so the smallest possible `u` is enough: once
//! where `a` is near, and one more where it is far. An exact tie of `a` and `j` (margin 0) needs
//! one more `u` too; the far weight, which is not the larger one, covers it. The bound is never
//! above the exact minimum. Sorting dominates the cost:
//! O(K log K) a rival.

mod barrier;
mod claim_targets;
mod ordered;
mod pairs;
mod weights;

use std::cell::OnceCell;

pub(super) use crate::evidence::certificate::barrier::Barrier;
pub(super) use crate::evidence::certificate::claim_targets::{ClaimTargets, PlainTargets};
use crate::evidence::certificate::ordered::{Beginnings, Direct, Ordered, least_exp};
pub use crate::evidence::certificate::pairs::{FewOutcomes, PairEvidence};
pub(super) use crate::evidence::certificate::pairs::{Memo, largest};
use crate::evidence::certificate::weights::{Shares, TYPE_II, Weights, condorcet_weight};
use crate::evidence::stake::{Stake, exp};

/// A capital that lacks so many nats is short, whatever the last digits are.
pub(super) const CLEARLY: f64 = 1e-3;
/// Number of rivals whose evidence is read together.
const RIVALS_AT_ONCE: usize = 16;
/// From so many numbers of losses on, a few truths are looked at before all.
const TRUTHS_MANY: usize = 64;
/// `ln E` is cut off here: it is far beyond what any verdict needs, and products stay finite.
const MOST_LN: f64 = 40.0;
/// Why a ranker is not certified.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blocking {
    /// The rival against which it is short of evidence.
    pub rival: usize,
    /// What is missing, in nats. Above 0.
    pub lacks: f64,
    /// Whether the pairs of the rival alone say so, without the other pairs of the ranker.
    pub by_rival: bool,
}

/// The stopping rule for one number of rankers, error and margin.
#[derive(Debug, Clone)]
pub struct CopelandRule {
    rankers: usize,
    /// `ln(1/δ)`.
    threshold: f64,
    margin: bool,
    stake: Stake,
    weights: Weights,
}

/// `ln E(a≻y)` of every `y` but `a`, in their order.
struct Claims {
    by_rival: Vec<f64>,
    /// Needed only for a whole capital.
    ordered: OnceCell<Ordered>,
}

impl Claims {
    fn ordered(&self, rule: &CopelandRule) -> &Ordered {
        self.ordered.get_or_init(|| Ordered::new(self.by_rival.clone(), rule.stake))
    }
}

impl CopelandRule {
    /// A verdict that is wrong in at most a share `error` of experiments. `rankers` is 2 or more,
    /// `error` in (0, 1). With a `margin` of 0 the verdict is "a Copeland winner"; with one above 0
    /// it is "a Copeland winner if pairs within the margin of 1/2 may go either way".
    pub fn new(rankers: usize, error: f64, margin: f64) -> Self {
        Self::with_weights(rankers, error, margin, false)
    }

    /// The same with a capital that follows refuters, for a run whose evidence
    /// [has them](PairEvidence::with_refuters). There are none for two rankers.
    pub fn following(rankers: usize, error: f64, margin: f64) -> Self {
        Self::with_weights(rankers, error, margin, Self::follows(rankers))
    }

    /// Whether a capital can follow refuters.
    pub fn follows(rankers: usize) -> bool {
        rankers > 2
    }

    fn with_weights(rankers: usize, error: f64, margin: f64, follows: bool) -> Self {
        let margin = margin > 0.0;
        Self {
            rankers,
            threshold: -libm::log(error),
            margin,
            stake: Stake::among(rankers - 1),
            weights: Weights::new(rankers, margin, follows),
        }
    }

    /// `ln(1/δ)`: what [`CopelandRule::ln_capital`] must reach against every rival.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The capital against every rival `j`, the smallest over all truths in which `j` is a winner
    /// and `a` is not: `(j, ln Φ)`, ascending by `j`. `a` is certified once all reach
    /// [`CopelandRule::threshold`]. O(K² log K).
    pub fn ln_capitals(&self, evidence: &PairEvidence, a: usize) -> Vec<(usize, f64)> {
        let claims = self.claims(evidence, a);
        let rivals: Vec<usize> = (0..self.rankers).filter(|&j| j != a).collect();
        let mut capitals = Vec::with_capacity(rivals.len());
        for rivals in rivals.chunks(RIVALS_AT_ONCE) {
            // neighbours in a row of counts are read together
            let mut losses = vec![Vec::with_capacity(self.rankers); rivals.len()];
            for x in (0..self.rankers).filter(|&x| x != a) {
                for (&j, losses) in rivals.iter().zip(&mut losses).filter(|&(&j, _)| j != x) {
                    losses.push(evidence.ln(x, j).min(MOST_LN));
                }
            }
            let each = rivals.iter().zip(losses);
            let least = |j, losses| self.least_capital(evidence, a, &claims, j, losses);
            capitals.extend(each.map(|(&j, losses)| (j, least(j, losses))));
        }
        capitals
    }

    /// The rival against which `a` is short of evidence; `None` if `a` is certified. `before` is
    /// what blocked it at an earlier check: that rival is looked at first. O(K log K) while the
    /// same rival blocks.
    pub fn blocks(
        &self,
        evidence: &PairEvidence,
        a: usize,
        before: Option<Blocking>,
    ) -> Option<Blocking> {
        let claims = self.claims(evidence, a);
        let blocks = |rival: usize| {
            let (capital, by_rival) =
                (rival != a).then(|| self.short_capital(evidence, a, &claims, rival))??;
            Some(Blocking { rival, lacks: self.threshold - capital, by_rival })
        };
        let first = before.map(|blocking| blocking.rival).filter(|&rival| rival < self.rankers);
        first.and_then(blocks).or_else(|| (0..self.rankers).find_map(blocks))
    }

    /// The logarithm of a capital against `j` that is short of the threshold, and whether it
    /// consists of pairs of `j` alone.
    fn short_capital(
        &self,
        evidence: &PairEvidence,
        a: usize,
        claims: &Claims,
        j: usize,
    ) -> Option<(f64, bool)> {
        let direct = claims.by_rival[j - usize::from(j > a)];
        let clear = self.ln_capital_of_one_loss(evidence, direct, a, j);
        if clear < self.threshold - CLEARLY {
            return Some((clear, true));
        }
        let least = self.ln_capital_of(evidence, a, claims, j);
        (least < self.threshold).then_some((least, false))
    }

    /// What every ranker lacks at least, in nats, but `leader` and the others of `blocked`: they
    /// are short in the truth in which `leader` beats all others and they lose to it alone. 0 or
    /// more; infinite where there is no such ranker. It depends on the pairs of `leader` alone.
    ///
    /// This and [`Blocking::lacks`] say how many further outcomes certify no ranker, whatever they
    /// are. An outcome raises `ln E` of its pair by at most [`LeadEvidence::most_gain`], and the
    /// logarithm of a factor `1 - w + w E` by no more. In each term of a capital a pair appears at
    /// most once, and from one side. So a capital gains at most that much, and only from its own
    /// pairs. The bound that decides consists of smallest sums, means and products of such terms,
    /// and gains no more either.
    pub fn others_lack(
        &self,
        evidence: &PairEvidence,
        leader: usize,
        blocked: &[(usize, Blocking)],
    ) -> f64 {
        let is_other = |x: &usize| *x != leader && blocked.iter().all(|(known, _)| known != x);
        let claims =
            (0..self.rankers).filter(is_other).map(|x| (evidence.ln(x, leader).min(MOST_LN), x));
        let Some((claim, x)) = claims.max_by(|one, other| one.0.total_cmp(&other.0)) else {
            return f64::INFINITY;
        };
        let capital = self.ln_capital_of_one_loss(evidence, claim, x, leader);
        (self.threshold - capital).max(0.0)
    }

    /// Whether `a` is certified to beat every other ranker, or to lose to none by more than the
    /// margin. Then nothing [blocks](CopelandRule::blocks) it. O(K² log K).
    pub fn certifies_condorcet(&self, evidence: &PairEvidence, a: usize) -> bool {
        self.condorcet_lacks(evidence, a) <= 0.0
    }

    /// What the claim that `a` beats every other ranker lacks at least, in nats; above 0 until it is
    /// certified. An outcome adds at most as much as to [`CopelandRule::others_lack`].
    pub(super) fn condorcet_lacks(&self, evidence: &PairEvidence, a: usize) -> f64 {
        let claims = self.claims(evidence, a);
        let alone = self.condorcet_lacks_alone(&claims);
        if alone > 0.0 {
            return alone;
        }
        let rivals = (0..self.rankers).filter(|&j| j != a);
        let lacks = rivals.map(|j| self.threshold - self.ln_capital_of(evidence, a, &claims, j));
        lacks.fold(0.0, f64::max)
    }

    /// What it lacks in the truths in which no ranker beats all others. 0 or more; it depends on
    /// the claims alone.
    fn condorcet_lacks_alone(&self, claims: &Claims) -> f64 {
        if self.rankers == 2 {
            return 0.0;
        }
        let own = claims.ordered(self).beginnings(None);
        let of_losses = |losses: usize| {
            self.threshold
                - libm::log(condorcet_weight(self.rankers, losses, self.margin))
                - own.ln_product[losses]
        };
        (1..self.rankers).map(of_losses).fold(0.0, f64::max)
    }

    /// The logarithm of a lower bound of the capital over all truths in which `j` is a winner and
    /// `a` is not. `a` and `j` differ. O(K log K).
    pub fn ln_capital(&self, evidence: &PairEvidence, a: usize, j: usize) -> f64 {
        self.ln_capital_of(evidence, a, &self.claims(evidence, a), j)
    }

    /// The logarithm of the capital of the truth in which `a` loses to `j` alone, which beats all
    /// others. Of all truths it is the one that blocks most often, and the only one that needs no
    /// sorting. Infinite where `X(j)` and its first term, with `direct` of `ln E(a≻j)`, are
    /// enough. O(K).
    fn ln_capital_of_one_loss(
        &self,
        evidence: &PairEvidence,
        direct: f64,
        a: usize,
        j: usize,
    ) -> f64 {
        if self.rankers == 2 {
            return direct;
        }
        let others = (self.rankers - 1) as f64;
        let [b1, b2, _, b4, b5] = self.weights.one;
        let first = b1 * self.weights.type_one(1) * exp(direct) + self.followed(evidence, j);
        if first >= exp(self.threshold) {
            return f64::INFINITY;
        }
        let mut sum = exp(direct);
        let mut staked = self.stake.factor(sum);
        for x in (0..self.rankers).filter(|&x| x != a && x != j) {
            let evidence = exp(evidence.ln(x, j).min(MOST_LN));
            sum += evidence;
            staked *= self.stake.factor(evidence);
        }
        // a product that overflows is not short
        libm::log(first + b2 / others * sum + (b4 + b5 / others) * staked)
    }

    fn claims(&self, evidence: &PairEvidence, a: usize) -> Claims {
        let mut claims = Vec::with_capacity(self.rankers);
        let others = (0..self.rankers).filter(|&y| y != a);
        claims.extend(others.map(|y| evidence.ln(a, y).min(MOST_LN)));
        Claims { by_rival: claims, ordered: OnceCell::new() }
    }

    fn ln_capital_of(&self, evidence: &PairEvidence, a: usize, claims: &Claims, j: usize) -> f64 {
        let others = (0..self.rankers).filter(|&x| x != a && x != j);
        let mut losses = Vec::with_capacity(self.rankers);
        losses.extend(others.map(|x| evidence.ln(x, j).min(MOST_LN)));
        self.least_capital(evidence, a, claims, j, losses)
    }

    /// [`Self::ln_capital`] from the claims of `a` and those of all others against `j`.
    fn least_capital(
        &self,
        evidence: &PairEvidence,
        a: usize,
        claims: &Claims,
        j: usize,
        losses: Vec<f64>,
    ) -> f64 {
        let direct = claims.by_rival[j - usize::from(j > a)];
        if self.rankers == 2 {
            return direct;
        }
        let rival = Ordered::new(losses, self.stake).beginnings(None);
        let leader = claims.ordered(self).beginnings(Some(direct));
        let lost = Direct::new(self.stake, direct, &rival);
        let count = self.rankers - 2;
        let followed = self.followed(evidence, j);
        let of_size = |v: usize, mut least: f64| {
            least = self.type_one(&lost, &rival, &leader, (v, followed), least);
            if v >= 1 {
                let truths = [(count - v, true), (count - v + 1, false)];
                for (u, near) in truths {
                    least = self.type_two(Some(&lost), &rival, &leader, (u, v, near), least);
                }
            }
            if v >= 2 {
                let u = count + 2 - v;
                least = self.type_two(None, &rival, &leader, (u, v, true), least);
                if u < count {
                    least = self.type_two(None, &rival, &leader, (u + 1, v, false), least);
                }
            }
            least
        };
        // a few truths first: the smaller the least capital so far, the more truths are passed over
        let most = if count < TRUTHS_MANY { 0 } else { count };
        let few = std::iter::successors(Some(1), |v| Some(2 * v)).take_while(|&v| v <= most);
        let least = few.fold(f64::INFINITY, |least, v| of_size(v, least));
        let least = (0..=count).fold(least, |least, v| of_size(v, least));
        libm::log(least)
    }

    /// `b6 X(j)`.
    fn followed(&self, evidence: &PairEvidence, j: usize) -> f64 {
        match self.weights.followed {
            0.0 => 0.0,
            weight => weight * evidence.followed(j),
        }
    }

    /// `j` beats all others: `a`, and `v` more are not beaten by `a`. Returns the smaller one of
    /// the capital and `least`.
    fn type_one(
        &self,
        direct: &Direct,
        rival: &Beginnings,
        leader: &Beginnings,
        (v, followed): (usize, f64),
        least: f64,
    ) -> f64 {
        let others = (self.rankers - 1) as f64;
        let all = self.rankers - 2;
        let [b1, b2, b3, b4, b5] = self.weights.one;
        let second = b2 / others * (direct.value + rival.sum[all]);
        let third = b3 / (others * others) * leader.sum[v];
        let staked = direct.ln_staked + rival.ln_staked[all];
        if followed + second + third + b4 * least_exp(staked) >= least {
            return least;
        }
        let capital = b1 * self.weights.type_one(v + 1) * exp(direct.ln + leader.ln_product[v])
            + followed
            + second
            + third
            + b4 * exp(staked)
            + b5 / others * exp(staked + leader.ln_staked[v]);
        least.min(capital)
    }

    /// No ranker beats all others: `j` beats `u` rankers other than `a`, which does not beat `v`
    /// other than `j`, and is near or far; `direct` is there where `a` does not beat `j` either.
    /// Returns the smaller one of the capital and `least`.
    fn type_two(
        &self,
        direct: Option<&Direct>,
        rival: &Beginnings,
        leader: &Beginnings,
        (u, v, near): (usize, usize, bool),
        least: f64,
    ) -> f64 {
        let losses = v + usize::from(direct.is_some());
        let Shares { o, g, third } = self.weights.type_two(losses, near);
        let [b1, b2, _, b4, b5] = TYPE_II;
        // no term is negative, and what follows costs most of the time
        let third = third * leader.sum[v];
        if third >= least {
            return least;
        }
        let mean = direct.map_or_else(|| rival.mean(u), |direct| direct.smallest_means[u]);
        let second = b2 * mean;
        let (ln, ln_staked) = direct.map_or((0.0, 0.0), |direct| (direct.ln, direct.ln_staked));
        let staked = rival.ln_staked[u] + ln_staked;
        if second + third + b4 * least_exp(staked) >= least {
            return least;
        }
        let capital = b1 * o * exp(ln + leader.ln_product[v])
            + second
            + third
            + b4 * exp(staked)
            + b5 * g * exp(staked + leader.ln_staked[v]);
        least.min(capital)
    }
}
