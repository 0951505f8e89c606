//! The weights of a player, and the tickets that carry them.

use rand::RngExt;

use dueling_bandits::PolicyRng;

/// Smallest probability used to weight an outcome. Rankers with smaller ones are almost never
/// drawn.
pub(super) const LEAST: f64 = 1e-9;

/// The weights of losses `losses` at learning rate `rate`: positive, with sum 1.
///
/// Newton's method, from the right end of the bracket `[min L - 2√K/η, min L - 2/η]`. The sum of
/// weights is convex and increasing in `x`, and at least 1 at that end. The iterates therefore fall
/// towards the root and never pass it. Only arithmetic and square roots are used, so the result is
/// the same on every machine.
pub(super) fn weights(losses: &[f64], rate: f64) -> Vec<f64> {
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let mut x = least - 2.0 / rate;
    let root = |loss: f64, x: f64| 2.0 / (rate * (loss - x)); // the square root of the weight
    loop {
        let (mut sum, mut slope) = (0.0, 0.0);
        for &loss in losses {
            let root = root(loss, x);
            sum += root * root;
            slope += root * root * root;
        }
        let next = x - (sum - 1.0) / (rate * slope);
        if (sum - 1.0).abs() < 1e-13 || next >= x {
            return losses.iter().map(|&loss| root(loss, x) * root(loss, x) / sum).collect();
        }
        x = next;
    }
}

/// Add the estimate from one draw to `losses`: `drawn` was drawn with `probability` and had the
/// loss `loss`. Arms with a weight of at least `baseline_from` have the baseline 1/2.
pub(super) fn add_losses(
    losses: &mut [f64],
    weights: &[f64],
    baseline_from: f64,
    drawn: usize,
    probability: f64,
    loss: f64,
) {
    let baseline = |i: usize| if weights[i] >= baseline_from { 0.5 } else { 0.0 };
    for (i, losses) in losses.iter_mut().enumerate() {
        *losses += baseline(i);
    }
    losses[drawn] += (loss - baseline(drawn)) / probability.max(LEAST);
}

/// A random index; each has its weight as probability.
pub(super) fn draw(weights: &[f64], rng: &mut PolicyRng) -> usize {
    let mut left: f64 = rng.random();
    for (i, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i;
        }
    }
    weights.len() - 1
}

/// Two probabilities in single precision, with a relative error below one part in ten million.
pub(super) fn ticket(first: f64, second: f64) -> u64 {
    let bits = |probability: f64| u64::from((probability.max(LEAST) as f32).to_bits());
    bits(first) << 32 | bits(second)
}

/// The two probabilities of a [`ticket`]; `None` if `ticket` was not made by that function.
pub(super) fn probabilities(ticket: u64) -> Option<(f64, f64)> {
    let probability = |bits: u64| f64::from(f32::from_bits(bits as u32));
    let (first, second) = (probability(ticket >> 32), probability(ticket & 0xffff_ffff));
    let legal = |probability: f64| (LEAST / 2.0..=1.0).contains(&probability);
    (legal(first) && legal(second)).then_some((first, second))
}
