//! Weights of clicks, learned from simulated pages on which the better ranker is known, as in Yue,
//! Gao, Chapelle, Zhang and Joachims, "Learning more powerful test statistics for click-based
//! retrieval evaluation", SIGIR 2010.
//!
//! They make the ratio of mean and deviation of a page's score as large as possible. Here an
//! outcome is drawn: it is decided with the probability `|t|`, where `t` is the score over its
//! bound. A decided page is won by the better ranker with the probability `(1 + E t / E|t|) / 2`.
//! Pages to a verdict are therefore in proportion to `E|t| / (E t)²`, and its inverse, the *rate*,
//! is what is made as large as possible. Heavier weights of some clicks raise the bound for all.

use rand::SeedableRng;

use super::pages::{Page, Pages};
use dueling_bandits::PolicyRng;
use interleaving::{ClickWeights, Method, Spec, WEIGHTED_POSITIONS};

/// Positions, then highest, lowest and only.
const FEATURES: usize = WEIGHTED_POSITIONS + 3;
/// The largest learned weight. Smaller ones are rounded to fractions of it.
const LARGEST: f64 = 20.0;
const ROUNDS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    pub weights: ClickWeights,
    /// The rate without weights. Pages to a verdict are in proportion to its inverse.
    pub rate_before: f64,
    /// The rate with the weights, on the same pages. They are not those that were learned from.
    pub rate_after: f64,
}

/// Learns from this many pages of each pair of rankers (indices into the features of the data set).
/// The first of a pair is the better one. The credit of the method must add up clicks; its own
/// weights are ignored.
pub fn learn(pages: &Pages<'_>, pairs: &[(usize, usize)], of_each: u64) -> Learned {
    let pages = Pages { method: Spec { click_weights: None, ..pages.method }, ..*pages };
    let (mut seen, mut held_out) = (Vec::new(), Vec::new());
    let mut page = Page::default();
    for (number, &pair) in pairs.iter().enumerate() {
        let mut rng = PolicyRng::seed_from_u64(pages.seed.wrapping_add(number as u64));
        for number in 0..of_each {
            let part = if number % 2 == 0 { &mut seen } else { &mut held_out };
            pages.show(pair, &mut rng, &mut page);
            part.extend(features_of(&pages, &mut page, &mut rng));
        }
    }
    let mut even = [0.0; FEATURES];
    even[..WEIGHTED_POSITIONS].fill(1.0);
    let best = maximum(&seen, even);
    let largest = best.iter().copied().fold(0.0, f64::max);
    let rounded = best.map(|weight| (weight / largest * LARGEST).round() as u8);
    let mut weights = ClickWeights::default();
    weights.positions.copy_from_slice(&rounded[..WEIGHTED_POSITIONS]);
    [weights.highest, weights.lowest, weights.only] =
        [0, 1, 2].map(|at| rounded[WEIGHTED_POSITIONS + at]);
    Learned {
        weights,
        rate_before: rate(&held_out, &even),
        rate_after: rate(&held_out, &rounded.map(f64::from)),
    }
}

/// A page with clicks, by feature.
struct PageFeatures {
    /// The clicks' scores for the better ranker, each over its bound.
    scores: [f64; FEATURES],
    /// Numbers of clicks.
    clicks: [f64; FEATURES],
}

/// The features of a page; `None` without a click that can earn credit.
fn features_of(pages: &Pages<'_>, shown: &mut Page, rng: &mut PolicyRng) -> Option<PageFeatures> {
    if let Method::Optimized(optimized) = pages.method.method {
        shown.clicked.retain(|&position| position < optimized.depth as usize);
    }
    let positions = &shown.clicked;
    let mut page = PageFeatures { scores: [0.0; FEATURES], clicks: [0.0; FEATURES] };
    for (at, &position) in positions.iter().enumerate() {
        let Some(earned) = pages.credit(shown, &[position], rng) else { continue };
        let score = 2.0 * earned.share.value() - 1.0;
        let mut holds = [false; FEATURES];
        holds[position.min(WEIGHTED_POSITIONS - 1)] = true;
        holds[WEIGHTED_POSITIONS] = at == 0;
        holds[WEIGHTED_POSITIONS + 1] = at + 1 == positions.len();
        holds[WEIGHTED_POSITIONS + 2] = positions.len() == 1;
        for feature in (0..FEATURES).filter(|&feature| holds[feature]) {
            page.scores[feature] += score;
            page.clicks[feature] += 1.0;
        }
    }
    (!positions.is_empty()).then_some(page)
}

/// `(E t)² / E|t|` for the scores over their bounds with these weights.
fn rate(pages: &[PageFeatures], weights: &[f64; FEATURES]) -> f64 {
    let largest = weights[..WEIGHTED_POSITIONS].iter().copied().fold(0.0, f64::max)
        + weights[WEIGHTED_POSITIONS..].iter().sum::<f64>();
    let weigh = |features: &[f64; FEATURES]| -> f64 {
        weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum()
    };
    let (mut mean, mut size) = (0.0, 0.0);
    for page in pages {
        let score = weigh(&page.scores) / weigh(&page.clicks).max(largest);
        mean += score;
        size += score.abs();
    }
    // A negative mean prefers the worse ranker.
    if mean > 0.0 { mean * mean / (size * pages.len() as f64) } else { 0.0 }
}

/// Weights, none of them negative, with the largest rate: one weight after the other is set to the
/// best of some multiples of it, until none improves.
fn maximum(pages: &[PageFeatures], from: [f64; FEATURES]) -> [f64; FEATURES] {
    let (mut best, mut most) = (from, rate(pages, &from));
    for _ in 0..ROUNDS {
        let before = most;
        for at in 0..FEATURES {
            let now = best[at];
            for tried in [0.0, 0.7 * now, 1.4 * now, now + 0.1, now + 0.5] {
                let mut weights = best;
                weights[at] = tried;
                let found = rate(pages, &weights);
                if found > most {
                    (best, most) = (weights, found);
                }
            }
        }
        if most - before <= 1e-3 * before {
            break;
        }
    }
    best
}
