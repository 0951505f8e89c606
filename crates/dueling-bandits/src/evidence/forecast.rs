//! How many more duels until the winner is certain, if things go on as they do now.
//!
//! An estimate and no promise. For each of some draws of the preferences from their posterior,
//! every open pair is followed as if its comparisons came at their present rate and had their
//! expected outcomes, up to the moment at which [`Sequence`] settles it; the winner is certain at
//! the earliest moment at which [`Certainty`] has one. The estimate is the median over the draws. A
//! policy that stops to compare what it holds for decided slows down, so the truth is later rather
//! than sooner.

use super::certainty::{Certainty, certain_winners};
use super::{History, Sequence};
use crate::pairwise_sampling::theta;
use crate::{PolicyRng, Tally};

/// More open pairs than that are too many to follow.
const PAIRS_MAX: usize = 4000;
/// Pairs followed over all draws, about.
const FOLLOWED: usize = 64_000;
/// Fewest and most draws.
const DRAWS: std::ops::RangeInclusive<usize> = 16..=200;
/// A pair that needs more comparisons is even for all that can be known.
const COMPARISONS_MAX: f64 = 1e12;

/// How many more duels: time-steps, self-duels among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Median.
    pub estimate: f64,
    /// One draw in ten is below.
    pub low: f64,
    /// One draw in ten is above; `None` where those come to no end.
    pub high: Option<f64>,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknowable {
    /// There is no present rate.
    NoDuels,
    /// So many pairs could still decide it.
    TooManyPairs(usize),
    /// Pairs that would decide it are not compared of late; one of them.
    NotCompared(usize, usize),
    /// Rankers that can still win look alike.
    Even,
}

/// Forecast from the open pairs of `certainty`, a certainty of `tally`. 0 where the winner is
/// certain.
pub fn forecast(
    tally: &Tally,
    certainty: &Certainty,
    history: &History,
    rng: &mut PolicyRng,
) -> Result<Forecast, Unknowable> {
    if !certainty.certain().is_empty() {
        return Ok(Forecast { estimate: 0.0, low: 0.0, high: Some(0.0) });
    }
    if history.steps() == 0 {
        return Err(Unknowable::NoDuels);
    }
    let pairs = certainty.deciding_pairs();
    if pairs.len() > PAIRS_MAX {
        return Err(Unknowable::TooManyPairs(pairs.len()));
    }
    let rated: Vec<_> = pairs
        .iter()
        .map(|&(i, j)| (i, j, history.rate(i, j)))
        .filter(|(_, _, rate)| *rate > 0.0)
        .collect();
    let draws = (FOLLOWED / rated.len().max(1)).clamp(*DRAWS.start(), *DRAWS.end());
    let mut ends: Vec<f64> = (0..draws).map(|_| end(tally, certainty, &rated, rng)).collect();
    ends.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| ends[(share * (draws - 1) as f64).round() as usize];
    if at(0.5).is_finite() {
        let high = at(0.9);
        return Ok(Forecast {
            estimate: at(0.5),
            low: at(0.1),
            high: high.is_finite().then_some(high),
        });
    }
    match pairs.iter().find(|&&(i, j)| history.rate(i, j) == 0.0) {
        Some(&(i, j)) => Err(Unknowable::NotCompared(i, j)),
        None => Err(Unknowable::Even),
    }
}

/// Steps until the winner is certain, for one draw of the preferences; infinite where it never is.
fn end(
    tally: &Tally,
    certainty: &Certainty,
    rated: &[(usize, usize, f64)],
    rng: &mut PolicyRng,
) -> f64 {
    // (steps until settled, better, worse)
    let mut settled: Vec<(f64, usize, usize)> = rated
        .iter()
        .map(|&(i, j, rate)| {
            let p = theta(tally, i, j, rng);
            let steps =
                comparisons(certainty.sequence(i, j), tally.wins(i, j), tally.wins(j, i), p) / rate;
            if p > 0.5 { (steps, i, j) } else { (steps, j, i) }
        })
        .filter(|(steps, _, _)| steps.is_finite())
        .collect();
    settled.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let is_certain_after = |count: usize| {
        let rankers = certainty.roster().rankers();
        let mut least: Vec<usize> = (0..rankers).map(|i| certainty.certain_wins(i)).collect();
        let mut most: Vec<usize> = (0..rankers).map(|i| certainty.possible_wins(i)).collect();
        for &(_, better, worse) in &settled[..count] {
            least[better] += 1;
            most[worse] -= 1;
        }
        !certain_winners(&least, most.into_iter()).is_empty()
    };
    if !is_certain_after(settled.len()) {
        return f64::INFINITY;
    }
    let (mut too_few, mut enough) = (0, settled.len());
    while enough - too_few > 1 {
        let middle = (too_few + enough) / 2;
        if is_certain_after(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    settled[enough - 1].0
}

/// Further comparisons until a pair with these counts is settled if a share `p` of them is won;
/// infinite where that is beyond all measure.
fn comparisons(sequence: Sequence, wins: f64, losses: f64, p: f64) -> f64 {
    let is_settled = |more: f64| {
        let (wins, losses) = (wins + more * p, losses + more * (1.0 - p));
        (wins > losses) == (p > 0.5) && evidence(wins, losses) >= sequence.threshold()
    };
    let (mut too_few, mut enough) = (0.0, 1.0);
    while !is_settled(enough) {
        if enough > COMPARISONS_MAX {
            return f64::INFINITY;
        }
        (too_few, enough) = (enough, 2.0 * enough);
    }
    // to a hundredth: the rest is the noise of the draw
    while enough - too_few > 0.01 * enough {
        let middle = (too_few + enough) / 2.0;
        if is_settled(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    enough
}

/// `ln M(1/2)` by Stirling's formula: many of them, and none decides anything.
fn evidence(wins: f64, losses: f64) -> f64 {
    let plays = wins + losses;
    // half an outcome on either side keeps both logarithms finite
    let p = (wins + 0.5) / (plays + 1.0);
    let divergence = std::f64::consts::LN_2 + p * p.ln() + (1.0 - p) * (1.0 - p).ln();
    plays * divergence + 0.5 * (2.0 * std::f64::consts::PI * p * (1.0 - p) / plays).ln()
}
