//! The Kullback-Leibler divergence of two Bernoulli distributions, the same on every machine.

/// `d(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))` with `0 ln 0 = 0`, in nats; infinite where `q`
/// gives probability 0 to an outcome that `p` does not. Both are in `[0, 1]`.
pub fn between(p: f64, q: f64) -> f64 {
    let term = |a: f64, b: f64| if a > 0.0 { a * libm::log(a / b) } else { 0.0 };
    term(p, q) + term(1.0 - p, 1.0 - q)
}

/// `d(p, 1/2) = ln 2 + p ln p + (1-p) ln(1-p)` with `0 ln 0 = 0`, in nats: 0 at 1/2, `ln 2` at 0
/// and 1, never negative. `p` is in `[0, 1]`. Near 1/2, where the closed form cancels, its series
/// (`lab/notes/comparators.md` §1.1).
pub fn from_half(p: f64) -> f64 {
    let x = p - 0.5;
    if x.abs() < 1e-4 {
        let square = x * x;
        return 2.0 * square + 4.0 / 3.0 * square * square;
    }
    let term = |q: f64| if q > 0.0 { q * libm::log(q) } else { 0.0 };
    (std::f64::consts::LN_2 + term(p) + term(1.0 - p)).max(0.0)
}
