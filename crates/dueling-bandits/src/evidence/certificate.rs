//! When a Copeland winner is certain: the stopping rule. `docs/verdict-rule.md` has the notation
//! and the proof.
//!
//! Every truth about who beats whom has a *capital*, a weighted sum of products of the e-processes
//! `E` ([`LeadEvidence`](super::lead::LeadEvidence)) of null hypotheses that hold under it. Where
//! `j*` beats all others (type I) and where no ranker does (type II) it is
//!
//! ```text
//! Φ_I  = p Σ_{a wrong} o(|N(a)|) Π_{y∈N(a)} E(a≻y) + q mean_{x≠j*} E(x≻j*) + r X(j*)
//! Φ_II = s Σ_{a wrong} o(|N(a)|) Π_{y∈N(a)} E(a≻y) + t mean_{x∈S} E(x≻j*)
//!      + u Σ_{a wrong} 1/n mean_{y∈N(a)} E(a≻y)
//! ```
//!
//! with the capital `X` that follows [`Refuters`](super::refuters::Refuters). Ranker `a` is
//! certified once, for every rival `j` and every truth in which `j` is `j*` and `a` is wrong, the
//! capital is `1/δ` or more. For given `a` and `j` a truth enters through three things: whether `j`
//! is in `N(a)`, `v = |N(a) \ j|`, and the number `u` of rankers other than `a` in `S`.

mod pairs;
mod weights;

pub use crate::evidence::certificate::pairs::PairEvidence;
pub(super) use crate::evidence::certificate::pairs::largest;
use crate::evidence::certificate::weights::Weights;

/// `ln E` is cut off here: it is far beyond what any verdict needs, and sums stay finite.
const MOST_LN: f64 = 40.0;
/// Largest exponent whose exponential is computed.
const MOST_EXPONENT: f64 = 300.0;

/// The stopping rule for one number of rankers, error and margin.
#[derive(Debug, Clone)]
pub struct CopelandRule {
    rankers: usize,
    /// `ln(1/δ)`.
    threshold: f64,
    weights: Weights,
}

impl CopelandRule {
    /// A verdict that is wrong in at most a share `error` of experiments. `rankers` is 2 or more,
    /// `error` in (0, 1). With a `margin` of 0 the verdict is "a Copeland winner"; with one above 0
    /// it is "a Copeland winner if pairs within the margin of 1/2 may go either way".
    pub fn new(rankers: usize, error: f64, margin: f64) -> Self {
        Self::with_weights(rankers, error, Weights::without_refuters(rankers, margin > 0.0))
    }

    /// The same with the capital `X(j)` of refuters, for a run whose evidence
    /// [has them](PairEvidence::with_refuters). Needs more than two rankers and a margin above 0: see
    /// [`CopelandRule::uses_refuters`].
    pub fn with_refuters(rankers: usize, error: f64) -> Self {
        Self::with_weights(rankers, error, Weights::with_refuters(rankers))
    }

    /// Whether a run has refuters: with a margin. Without one, the first term of type I needs less
    /// evidence.
    pub fn uses_refuters(rankers: usize, margin: f64) -> bool {
        rankers > 2 && margin > 0.0
    }

    fn with_weights(rankers: usize, error: f64, weights: Weights) -> Self {
        Self { rankers, threshold: -libm::log(error), weights }
    }

    /// `ln(1/δ)`: what [`CopelandRule::ln_capital`] must reach against every rival.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The logarithm of a lower bound of the capital over all truths in which `j` is a winner and
    /// `a`, which is not `j`, is wrong. O(K log K).
    pub fn ln_capital(&self, evidence: &PairEvidence, a: usize, j: usize) -> f64 {
        let direct = exp(evidence.ln(a, j).min(MOST_LN));
        if self.rankers == 2 {
            return libm::log(direct);
        }
        let one = self.least_type_one(evidence, a, j);
        let two = self.least_type_two(evidence, a, j, direct);
        libm::log(one.min(two))
    }

    /// [`CopelandRule::ln_capital`] against every rival `j`, ascending by `j`. `a` is certified
    /// once all reach [`CopelandRule::threshold`]. O(K² log K).
    pub fn ln_capitals(&self, evidence: &PairEvidence, a: usize) -> Vec<(usize, f64)> {
        self.others(a).map(|j| (j, self.ln_capital(evidence, a, j))).collect()
    }

    /// A rival against which `a` is short of evidence; `None` if `a` is certified. `before` blocked
    /// it at an earlier check and is looked at first: O(K) as long as its pairs alone are too few.
    pub fn blocks(
        &self,
        evidence: &PairEvidence,
        a: usize,
        before: Option<usize>,
    ) -> Option<usize> {
        let enough = exp(self.threshold);
        let is_short = |&j: &usize| {
            self.rankers > 2 && self.type_one_of_one_loss(evidence, a, j) < enough
                || self.ln_capital(evidence, a, j) < self.threshold
        };
        let first = before.filter(|&j| j != a && j < self.rankers);
        first.into_iter().chain(self.others(a)).find(is_short)
    }

    /// Whether `a` is certified to beat every other ranker, or to lose to none by the margin or
    /// more. O(K² log K).
    pub fn certifies_condorcet(&self, evidence: &PairEvidence, a: usize) -> bool {
        let own = ascending(self.others(a).map(|y| evidence.ln(a, y)));
        let psi = least_product(&own, |losses| self.weights.any_ranker(losses));
        (self.rankers == 2 || libm::log(psi) >= self.threshold)
            && self.blocks(evidence, a, None).is_none()
    }

    /// The evidence that the claim "a beats y" needs for a leader `a` that is to beat all others.
    pub(super) fn claim_alone(&self, evidence: &PairEvidence, a: usize, y: usize) -> f64 {
        self.claim_of_type_one(evidence, (a, y))
    }

    /// The same without refuters. Proofs are compared by these: the refuters follow the leader so
    /// far, and would make its proof look cheap where no ranker beats all others.
    pub(super) fn plain_claim_alone(&self) -> f64 {
        self.claim_with(self.weights.plain_alone())
    }

    /// The evidence that a win needs of a leader that does not beat all others.
    pub(super) fn claim_win(&self) -> f64 {
        self.claim_with(self.weights.two[2] / self.others_count())
    }

    /// The evidence that "x beats y" needs as a loss of `y`.
    pub(super) fn claim_loss(&self, evidence: &PairEvidence, x: usize, y: usize) -> f64 {
        self.claim_of_type_one(evidence, (x, y)).max(self.plain_claim_loss())
    }

    /// The same without refuters.
    pub(super) fn plain_claim_loss(&self) -> f64 {
        self.claim_with(self.weights.two[1] / self.others_count())
    }

    fn claim_of_type_one(&self, evidence: &PairEvidence, (x, y): (usize, usize)) -> f64 {
        let [product, mean, followed] = self.weights.one;
        let plain = product * self.weights.alone(1) + mean / self.others_count();
        self.claim_with(plain + followed * evidence.stake(x, y))
    }

    /// The evidence that makes a capital with this weight enough.
    fn claim_with(&self, weight: f64) -> f64 {
        if self.rankers == 2 { self.threshold } else { self.threshold - libm::log(weight) }
    }

    fn others(&self, one: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.rankers).filter(move |&x| x != one)
    }

    fn others_count(&self) -> f64 {
        (self.rankers - 1) as f64
    }

    /// `j` beats all others, and `a` loses to it alone. O(K).
    fn type_one_of_one_loss(&self, evidence: &PairEvidence, a: usize, j: usize) -> f64 {
        let direct = exp(evidence.ln(a, j).min(MOST_LN));
        let product = self.weights.one[0] * self.weights.alone(1) * direct;
        self.type_one_of_rival(evidence, j) + product
    }

    /// The terms of type I that `a` does not change.
    fn type_one_of_rival(&self, evidence: &PairEvidence, j: usize) -> f64 {
        let [_, mean, followed] = self.weights.one;
        let sum: f64 = self.others(j).map(|x| exp(evidence.ln(x, j).min(MOST_LN))).sum();
        let followed = if followed > 0.0 { followed * evidence.followed(j) } else { 0.0 };
        mean * sum / self.others_count() + followed
    }

    /// `j` beats all others. `a` loses to `j`, and perhaps to those against which its evidence is
    /// the smallest.
    fn least_type_one(&self, evidence: &PairEvidence, a: usize, j: usize) -> f64 {
        let of_one_loss = self.type_one_of_one_loss(evidence, a, j);
        let product = self.weights.one[0];
        if product == 0.0 {
            return of_one_loss;
        }
        let direct = exp(evidence.ln(a, j).min(MOST_LN));
        let own = self.others(a).filter(|&y| y != j).map(|y| evidence.ln(a, y));
        let least = least_product(&ascending(own), |v| self.weights.alone(v + 1));
        of_one_loss.min(self.type_one_of_rival(evidence, j) + product * least * direct)
    }

    /// No ranker beats all others.
    fn least_type_two(&self, evidence: &PairEvidence, a: usize, j: usize, direct: f64) -> f64 {
        let others = || self.others(a).filter(|&x| x != j);
        let own = ascending(others().map(|y| evidence.ln(a, y)));
        let rivals = ascending(others().map(|x| evidence.ln(x, j)));
        let count = own.len();
        let rival_sums = sums(rivals.iter().map(|&ln| exp(ln)));
        // of `j` and the `u` or more smallest others
        let mut means = vec![f64::INFINITY; count + 1];
        let mut least = f64::INFINITY;
        for u in (0..=count).rev() {
            least = least.min((rival_sums[u] + direct) / (u + 1) as f64);
            means[u] = least;
        }
        let [product, mean, single] = self.weights.two;
        let capital = |losses: usize, ln_product: f64, rival_mean: f64, own_sum: f64| {
            product * self.weights.no_alone(losses) * exp(ln_product)
                + mean * rival_mean
                + single / self.others_count() * own_sum / losses as f64
        };
        let (mut ln_product, mut own_sum) = (0.0, 0.0);
        let mut smallest = f64::INFINITY;
        for v in 1..=count {
            ln_product += own[v - 1];
            own_sum += exp(own[v - 1]);
            let with_rival =
                capital(v + 1, ln_product + libm::log(direct), means[count - v], own_sum + direct);
            smallest = smallest.min(with_rival);
            if v >= 2 {
                let u = count + 2 - v;
                let without = capital(v, ln_product, rival_sums[u] / u as f64, own_sum);
                smallest = smallest.min(without);
            }
        }
        smallest
    }
}

/// The logarithms in ascending order, cut off.
fn ascending(logarithms: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = logarithms.map(|ln| ln.min(MOST_LN)).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The smallest weighted product of the 1, 2, … smallest `E`.
fn least_product(ascending: &[f64], weight: impl Fn(usize) -> f64) -> f64 {
    let mut ln_product = 0.0;
    let products = ascending.iter().zip(1..).map(|(ln, count)| {
        ln_product += ln;
        weight(count) * exp(ln_product)
    });
    products.fold(f64::INFINITY, f64::min)
}

/// Sums of the first 0, 1, 2, … values.
fn sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = vec![0.0];
    sums.extend(values.map(|value| {
        sum += value;
        sum
    }));
    sums
}

/// Stays finite.
fn exp(exponent: f64) -> f64 {
    libm::exp(exponent.min(MOST_EXPONENT))
}
