//! The probability that one ranker beats another: the mass of a beta posterior above 1/2.

use special::Beta as _;

use crate::Tally;

/// `Pr(θ > 1/2)` for `θ ~ Beta(a+1, b+1)`, from `a` wins and `b` losses, at least 0.
///
/// Computes the smaller tail and takes the other as its complement, so that neither loses digits.
/// Absolute error below 1e-9; 0 or 1 where the smaller tail is below 1e-11.
pub fn beta_above_half(a: f64, b: f64) -> f64 {
    if a == b {
        return 0.5;
    }
    let tail = lower_tail(a.min(b), a.max(b));
    if a < b { tail } else { 1.0 - tail }
}

/// `Pr(Beta(a+1, b+1) > 1/2)` for `a < b`.
fn lower_tail(a: f64, b: f64) -> f64 {
    // equals Pr(Bin(m, 1/2) ≤ a) with m = a + b + 1, continued between the integers
    let m = a + b + 1.0;
    let z = (b - a) / m.sqrt();
    // Hoeffding: the tail is at most exp(-z²/2)
    if z > 7.2 {
        return 0.0;
    }
    if m > SERIES_UP_TO {
        // its cost is constant; the series of the incomplete beta takes √m terms and loses digits
        return edgeworth_expansion(m, a - b);
    }
    let (p, q) = (b + 1.0, a + 1.0);
    0.5_f64.inc_beta(p, q, p.ln_beta(q))
}

/// Above this `m`, the error of [`edgeworth_expansion`] is below 1e-9.
const SERIES_UP_TO: f64 = 10_000.0;

/// [`beta_above_half`] with an error of at most [`NEARLY`], at a constant cost; `None` with few
/// comparisons.
pub fn beta_nearly_above_half(a: f64, b: f64) -> Option<f64> {
    let m = a + b + 1.0;
    (m >= EXPANSION_FROM).then(|| edgeworth_expansion(m, a - b))
}

/// From this `m` on, [`edgeworth_expansion`] has an error below [`NEARLY`].
const EXPANSION_FROM: f64 = 40.0;

/// `Pr(θ > 1/2)` of a pair with `m - 1` comparisons, of which the ranker won `lead` more than it
/// lost.
///
/// It equals `Pr(Bin(m, 1/2) ≤ a)` with `a = (m - 1 + lead) / 2` wins. The characteristic function
/// of a centred `Bin(m, 1/2)` at `2x` is `cos(x)^m`. Halfway between two integers, its distribution
/// function is that of a continuous distribution with the characteristic function
/// `cos(x)^m x / sin(x)`, except for exponentially small terms. The series of the logarithm of the
/// latter gives the variance `(m - 1/3) / 4` and the coefficients `c4`, `c6` and `c8` of Edgeworth's
/// expansion, which is computed up to the order `m⁻³`.
fn edgeworth_expansion(m: f64, lead: f64) -> f64 {
    let scale = 1.0 / (m - 1.0 / 3.0);
    let z = lead * scale.sqrt();
    let c4 = (m / 12.0 - 1.0 / 180.0) * scale * scale;
    let c6 = (m / 45.0 - 1.0 / 2835.0) * scale * scale * scale;
    let c8 = 17.0 * m / 2520.0 * scale * scale * scale * scale;
    let square = z * z;
    // Hermite polynomials of degree n over z
    let hermite3 = square - 3.0;
    let hermite5 = (square - 10.0) * square + 15.0;
    let hermite7 = ((square - 21.0) * square + 105.0) * square - 105.0;
    let hermite9 = (((square - 36.0) * square + 378.0) * square - 1260.0) * square + 945.0;
    let hermite11 = ((((square - 55.0) * square + 990.0) * square - 6930.0) * square + 17325.0)
        * square
        - 10395.0;
    let density = (-square / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let correction = -c4 * hermite3 + c6 * hermite5 + (c4 * c4 / 2.0 - c8) * hermite7
        - c4 * c6 * hermite9
        - c4 * c4 * c4 / 6.0 * hermite11;
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2) - density * z * correction
}

/// A source of win probabilities.
pub trait WinProbabilitySource {
    /// `Pr(θ[i][j] > 1/2)`, to all its digits.
    fn above_half(&self, i: usize, j: usize) -> f64;

    /// The same with an error of at most [`NEARLY`], if that is quicker.
    fn nearly_above_half(&self, _i: usize, _j: usize) -> Option<f64> {
        None
    }
}

/// Largest error of [`WinProbabilitySource::nearly_above_half`]: it leaves the leading bits of one
/// pair in 64 undecided.
pub const NEARLY: f64 = 1.0 / (1 << 24) as f64;

impl WinProbabilitySource for Tally {
    fn above_half(&self, i: usize, j: usize) -> f64 {
        beta_above_half(self.wins(i, j), self.wins(j, i))
    }

    fn nearly_above_half(&self, i: usize, j: usize) -> Option<f64> {
        beta_nearly_above_half(self.wins(i, j), self.wins(j, i))
    }
}
