//! Evidence against a coin's probability that may be looked at after every toss: Ville's method of
//! mixtures with a uniform mixture. Where it comes from, and what it promises:
//! [`crate::evidence::sequence`].

/// `ln M(p)` with `M(p) = B(1 + W, 1 + L) / (p^W (1 - p)^L)`: the likelihood of `W` wins and `L`
/// losses, which may be halves, under all probabilities alike, against the one under `p`. Where `p`
/// is the true one, `M(p)` ever reaches `1/α` with probability `α` at most. `p` is in `(0, 1)`.
pub fn evidence_against(p: f64, wins: f64, losses: f64) -> f64 {
    ln_mixture(wins, losses) - ln_likelihood(p, wins, losses)
}

/// [`evidence_against`] 1/2: that the two of a pair are not equal.
pub fn evidence_against_half(wins: f64, losses: f64) -> f64 {
    ln_mixture(wins, losses) + (wins + losses) * std::f64::consts::LN_2
}

/// `ln B(1 + W, 1 + L)`. One library on every machine: it decides state, and an experiment may be
/// concluded on it.
pub fn ln_mixture(wins: f64, losses: f64) -> f64 {
    libm::lgamma(wins + 1.0) + libm::lgamma(losses + 1.0) - libm::lgamma(wins + losses + 2.0)
}

/// `W ln p + L ln(1 - p)`, with `0 ln 0 = 0`.
pub fn ln_likelihood(p: f64, wins: f64, losses: f64) -> f64 {
    let term = |count: f64, probability: f64| {
        if count > 0.0 { count * libm::log(probability) } else { 0.0 }
    };
    term(wins, p) + term(losses, 1.0 - p)
}
