//! The claims, by their public face.

use dueling_bandits::claims::betting::Side;
use dueling_bandits::claims::guardrails::{Claim, Guardrails};

mod actions;
mod alone;
mod betting;
mod drift;
mod guardrails;
mod page_metrics;
mod segments;

/// The first claim of this kind about a ranker.
fn claim(rails: &Guardrails, ranker: usize, side: Side) -> Claim {
    let is_it = |claim: &Claim| claim.ranker == ranker && claim.side == side;
    rails.claims().find(is_it).expect("a claim")
}

/// The upper end of the exact 95 % interval of a share, of which `found` of `runs` were seen.
fn at_most(found: u64, runs: u64) -> f64 {
    // the probability of so few
    let so_few = |share: f64| {
        let term = |count: u64| {
            let choose: f64 =
                (0..count).map(|i| ((runs - i) as f64 / (i + 1) as f64).ln()).sum::<f64>();
            (choose + count as f64 * share.ln() + (runs - count) as f64 * (-share).ln_1p()).exp()
        };
        (0..=found).map(term).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if so_few(middle) > 0.025 { low = middle } else { high = middle }
    }
    high
}
