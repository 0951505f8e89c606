//! The size of a certified difference: a win rate, corrected for having been selected.
//!
//! A verdict comes at the moment at which the counts look best for the winner, so the win rate at
//! that moment is too high on average: 0.572 for a true 0.55. Most of this can be corrected without
//! leaving out duels.
//!
//! Let `S = W - L` after `n = W + L` duels of a pair. The evidence of a pair reaches its threshold
//! on a curve in the plane of `n` and `S`. Near the point of stopping the curve is a line
//! `S = a + b n`. A Brownian motion with drift `μ` and variance `σ²` per unit of time first meets
//! that line at a time `T` with an inverse Gaussian distribution, for which
//! `E[1/T] = (μ - b)/a + σ²/a²` (Tweedie, "Statistical properties of inverse Gaussian
//! distributions", Annals of Mathematical Statistics 1957). So `E[S/n] = b + a E[1/T] = μ + σ²/a`:
//! the difference of the shares is too large by `σ²/a` on average, and the win rate by half of it.
//! [`corrected_win_rate`] subtracts that, with `σ² = 4 p (1 - p)` at about the observed rate `p`
//! and with the tangent of the curve of constant evidence through the counts.
//!
//! The line and the Brownian motion are approximations. `docs/verdict.md` in the repository has the
//! measured bias.

use crate::evidence::lead::LeadEvidence;

/// The win rate after this many wins and losses, which may be halves, corrected for having been
/// selected by this evidence; never below 1/2. A win rate below 1/2 stays as it is: it is of a pair
/// that the winner lost, which the proof did not need. `None` before the first duel.
///
/// ```
/// use dueling_bandits::evidence::effect::corrected_win_rate;
/// use dueling_bandits::evidence::lead::LeadEvidence;
///
/// let evidence = LeadEvidence::over(0.01);
/// let rate = corrected_win_rate(&evidence, 42.0, 18.0).expect("they met");
/// assert!((0.66..0.69).contains(&rate), "below 0.70: {rate}");
/// ```
pub fn corrected_win_rate(evidence: &LeadEvidence, wins: f64, losses: f64) -> Option<f64> {
    let duels = wins + losses;
    if duels == 0.0 {
        return None;
    }
    let rate = wins / duels;
    // a pair that speaks against the winner did not select it
    if wins < losses {
        return Some(rate);
    }
    let now = evidence.ln(wins, losses);
    let of_win = evidence.ln(wins + 1.0, losses) - now;
    let of_loss = evidence.ln(wins, losses + 1.0) - now;
    // along the curve, wins change by -of_loss while losses change by of_win
    let slope = -(of_win + of_loss) / (of_win - of_loss);
    let intercept = wins - losses - slope * duels;
    // half a win and half a loss more, so that a ranker that never lost has a variance too
    let variable = (wins + 0.5) / (duels + 1.0);
    let excess = 2.0 * variable * (1.0 - variable) / intercept;
    // a curve that does not start above 0 is no boundary that selects
    let corrected = if intercept > 0.0 { rate - excess } else { rate };
    Some(corrected.max(0.5))
}
