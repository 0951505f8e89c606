//! Anytime-valid evidence against the probability of a coin: Ville's method of mixtures with a
//! uniform mixture. `evidence::sequence` has its sources and its guarantee.

/// `ln M(p)` with `M(p) = B(1 + W, 1 + L) / (p^W (1 - p)^L)`: the likelihood of `W` wins and `L`
/// losses, which may be halves, under a uniformly drawn probability, relative to that under `p`. If
/// `p` is the true probability, `M(p)` ever reaches `1/α` with probability `α` at most. `p` is in
/// `(0, 1)`.
pub fn evidence_against(p: f64, wins: f64, losses: f64) -> f64 {
    ln_mixture(wins, losses) - ln_likelihood(p, wins, losses)
}

/// [`evidence_against`] 1/2: evidence that the two rankers of a pair are not equal.
pub fn evidence_against_half(wins: f64, losses: f64) -> f64 {
    ln_mixture(wins, losses) + (wins + losses) * std::f64::consts::LN_2
}

/// `ln B(1 + W, 1 + L)`. Uses `libm` on every machine, because states and verdicts depend on it.
pub fn ln_mixture(wins: f64, losses: f64) -> f64 {
    ln_beta(wins + 1.0, losses + 1.0)
}

/// The logarithm of the mean likelihood ratio of coins from the distribution `Beta(prior, prior)`
/// against a fair coin, `B(prior + h, prior + t) / B(prior, prior) · 2^(h + t)`, after `h` heads and
/// `t` tails. Under a fair coin a martingale that starts at 1. A larger `prior` finds smaller
/// deviations from 1/2, and large ones later.
pub fn ln_against_fair_coin(prior: f64, heads: f64, tails: f64) -> f64 {
    ln_beta(prior + heads, prior + tails) - ln_beta(prior, prior)
        + (heads + tails) * std::f64::consts::LN_2
}

/// `ln B(a, b)`.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}

/// `W ln p + L ln(1 - p)`, with `0 ln 0 = 0`.
pub fn ln_likelihood(p: f64, wins: f64, losses: f64) -> f64 {
    let term = |count: f64, probability: f64| {
        if count > 0.0 { count * libm::log(probability) } else { 0.0 }
    };
    term(wins, p) + term(losses, 1.0 - p)
}
