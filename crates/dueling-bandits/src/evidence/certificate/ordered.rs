//! The evidence of several claims in ascending order.

use crate::evidence::stake::{MOST_EXPONENT, Stake, exp};

/// `ln E` of several claims, ascending, and what is summed of each.
#[derive(Debug)]
pub(super) struct Ordered {
    ln: Vec<f64>,
    /// `E`.
    value: Vec<f64>,
    /// `ln(1 - w + w E)`.
    ln_staked: Vec<f64>,
}

/// What the capital needs of the first claims of an order.
pub(super) struct Beginnings {
    /// `ln` of the product of the `k` smallest `E`.
    pub ln_product: Vec<f64>,
    /// Sum of the `k` smallest `E`.
    pub sum: Vec<f64>,
    /// `ln` of the product of the `k` smallest factors `1 - w + w E` and of all that are below 1.
    pub ln_staked: Vec<f64>,
}

impl Ordered {
    /// Of the logarithms of the evidence, in any order.
    pub fn new(mut ln: Vec<f64>, stake: Stake) -> Self {
        ln.sort_unstable_by(f64::total_cmp);
        let (mut value, mut staked) = (Vec::with_capacity(ln.len()), Vec::with_capacity(ln.len()));
        // pairs with the same counts have the same evidence
        for equal in ln.chunk_by(|one, next| one == next) {
            value.resize(value.len() + equal.len(), exp(equal[0]));
            staked.resize(staked.len() + equal.len(), stake.ln_factor(equal[0]));
        }
        Self { ln, value, ln_staked: staked }
    }

    /// Sums of the first 0, 1, 2, … claims but the one at `without`, if there is one.
    fn sums(&self, without: usize) -> Beginnings {
        let empty = || {
            let mut sums = Vec::with_capacity(self.ln.len() + 1);
            sums.push(0.0);
            sums
        };
        let mut sums = Beginnings { ln_product: empty(), sum: empty(), ln_staked: empty() };
        let (mut ln_product, mut sum, mut all_staked) = (0.0, 0.0, 0.0);
        let claims = self.ln.iter().zip(&self.value).zip(&self.ln_staked).enumerate();
        for (_, ((ln, value), ln_staked)) in claims.filter(|&(at, _)| at != without) {
            ln_product += ln;
            sum += value;
            all_staked += ln_staked;
            sums.ln_product.push(ln_product);
            sums.sum.push(sum);
            sums.ln_staked.push(all_staked);
        }
        sums
    }

    /// The beginnings of the claims `without` one that has this `ln E`.
    pub fn beginnings(&self, without: Option<f64>) -> Beginnings {
        let at = without.map_or(self.ln.len(), |ln| self.ln.partition_point(|&own| own < ln));
        let below_one = self.ln.partition_point(|&ln| ln < 0.0);
        let below_one = below_one - usize::from(at < below_one);
        let mut beginnings = self.sums(at);
        let all_below_one = beginnings.ln_staked[below_one];
        beginnings.ln_staked[..below_one].fill(all_below_one);
        beginnings
    }
}

impl Beginnings {
    /// The mean of the `k` smallest `E`. It ascends with `k`, since the values do.
    pub fn mean(&self, k: usize) -> f64 {
        self.sum[k.max(1)] / k.max(1) as f64
    }

    /// For each `k`, the smallest mean of `direct` and the `k` or more smallest `E`.
    pub fn smallest_means_with(&self, direct: f64) -> Vec<f64> {
        let mut smallest = vec![f64::INFINITY; self.sum.len()];
        let mut least = f64::INFINITY;
        for (k, sum) in self.sum.iter().enumerate().rev() {
            least = least.min((sum + direct) / (k + 1) as f64);
            smallest[k] = least;
        }
        smallest
    }
}

/// The claim of `a` against the rival itself, and what the capital needs of it.
pub(super) struct Direct {
    /// `E(a≻j)` and its logarithm.
    pub value: f64,
    pub ln: f64,
    /// `ln(1 - w + w E(a≻j))`.
    pub ln_staked: f64,
    /// [`Beginnings::smallest_means_with`] it.
    pub smallest_means: Vec<f64>,
}

impl Direct {
    pub fn new(stake: Stake, ln: f64, rival: &Beginnings) -> Self {
        let value = exp(ln);
        Self {
            value,
            ln,
            ln_staked: stake.ln_factor(ln),
            smallest_means: rival.smallest_means_with(value),
        }
    }
}

/// A lower bound of [`exp`] that takes no time: it is tangent at 0.
pub(super) fn least_exp(exponent: f64) -> f64 {
    // a little less, so that rounding does not matter
    (0.999_999 + exponent.min(MOST_EXPONENT)).max(0.0)
}
