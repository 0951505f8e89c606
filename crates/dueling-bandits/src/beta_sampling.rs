//! Samples of win rates from their beta posteriors, whole or given their side of 1/2.

use rand::{Rng as _, RngExt};
use rand_distr::{Distribution, Exp1, Gamma};

use crate::{PolicyRng, Tally};

/// `θ ~ Beta(wins+1, losses+1)`.
pub fn theta_of(wins: f64, losses: f64, rng: &mut PolicyRng) -> f64 {
    sampler(wins, losses)(rng)
}

/// Samples `Beta(a+1, b+1)`, `a` and `b` at least 0, as `X / (X+Y)` of two gamma variables. A gamma
/// variable whose shape is at least 1 takes one normal variable and seldom a logarithm. The sampler
/// for beta variables takes two to four logarithms or exponentials each time.
fn sampler(a: f64, b: f64) -> impl Fn(&mut PolicyRng) -> f64 {
    let gamma = |shape| Gamma::new(shape, 1.0).expect("a shape of at least 1");
    let (wins, losses) = (gamma(a + 1.0), gamma(b + 1.0));
    move |rng| {
        let (wins, losses) = (wins.sample(rng), losses.sample(rng));
        wins / (wins + losses)
    }
}

/// `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)` given its side of 1/2.
pub fn theta_given_side(
    tally: &Tally,
    i: usize,
    j: usize,
    above: bool,
    rng: &mut PolicyRng,
) -> f64 {
    if above {
        theta_above_half(tally.wins(i, j), tally.wins(j, i), rng)
    } else {
        1.0 - theta_above_half(tally.wins(j, i), tally.wins(i, j), rng)
    }
}

/// `θ ~ Beta(a+1, b+1)` given `θ > 1/2`, `a` and `b` at least 0. Takes a few draws, however
/// improbable the condition is.
pub fn theta_above_half(a: f64, b: f64, rng: &mut PolicyRng) -> f64 {
    if a + b == 0.0 {
        return 0.5 + rng.random::<f64>() / 2.0;
    }
    if let Some(theta) = order_statistic_above_half(a, b, rng) {
        return theta;
    }
    let behind = b - a;
    if behind <= (a + b + 1.0).sqrt() {
        // the condition holds at least about once in 6 draws: draw until it does
        let sample = sampler(a, b);
        loop {
            let theta = sample(rng);
            if theta > 0.5 {
                return theta;
            }
        }
    }
    // The log-density a ln θ + b ln(1-θ) is concave and falls above 1/2, so it lies under its
    // tangent at 1/2, whose slope is -2 (b - a). Propose from that exponential, accept by the gap.
    let slope = 2.0 * behind;
    loop {
        let step: f64 = rng.sample::<f64, _>(Exp1) / slope;
        if step >= 0.5 || step == 0.0 {
            continue;
        }
        let gap = a * (2.0 * step).ln_1p() + b * (-2.0 * step).ln_1p() + slope * step;
        if rng.sample::<f64, _>(Exp1) >= -gap {
            return 0.5 + step;
        }
    }
}

/// Most comparisons of a pair for [`order_statistic_above_half`].
const FEW_COMPARISONS: u32 = 7;

/// [`theta_above_half`] for a few comparisons without ties, else `None`.
///
/// `θ` is then the `a+1`-st smallest of `a+b+1` uniform numbers. It is above 1/2 if at most `a` of
/// them are below. Given how many are, the others are uniform above 1/2. This takes one random word
/// for a number, and no logarithm.
fn order_statistic_above_half(a: f64, b: f64, rng: &mut PolicyRng) -> Option<f64> {
    let (wins, all) = (a as u32, (a + b) as u32);
    if all > FEW_COMPARISONS || a.fract() != 0.0 || b.fract() != 0.0 {
        return None;
    }
    let mut below;
    loop {
        below = (rng.random::<u32>() >> (31 - all)).count_ones();
        if below <= wins {
            break;
        }
    }
    let mut others = [0; FEW_COMPARISONS as usize + 1];
    let others = &mut others[..(all + 1 - below) as usize];
    others.fill_with(|| rng.next_u64());
    let (_, &mut number, _) = others.select_nth_unstable((wins - below) as usize);
    // the middle of an interval of 2⁻⁵²: never 1/2 or 1
    Some(0.5 + ((number >> 13) as f64 + 0.5) * 2.0_f64.powi(-52))
}
