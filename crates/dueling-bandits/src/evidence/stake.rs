//! A part of the capital that is staked on each of several claims.

/// Largest exponent whose exponential is computed.
pub(super) const MOST_EXPONENT: f64 = 300.0;
/// `ln(1 - w + w E)` is `ln w + ln E` beyond this, to all digits that matter.
const DOMINATED: f64 = 30.0;

/// `w`: the part of the capital that is staked on each of several claims.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stake {
    w: f64,
}

impl Stake {
    /// `min(1/2, 1/others)`.
    pub fn among(others: usize) -> Self {
        Self { w: (1.0 / others as f64).min(0.5) }
    }

    /// `1 - w + w E`.
    pub fn factor(self, evidence: f64) -> f64 {
        1.0 - self.w + self.w * evidence
    }

    /// `ln(1 - w + w E)` of `ln E`.
    pub fn ln_factor(self, ln: f64) -> f64 {
        if ln > DOMINATED { ln + libm::log(self.w) } else { libm::log(self.factor(exp(ln))) }
    }
}

/// Stays finite.
pub(super) fn exp(exponent: f64) -> f64 {
    libm::exp(exponent.min(MOST_EXPONENT))
}
