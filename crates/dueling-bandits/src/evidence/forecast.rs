//! How many more duels until the winner is certain, at the present rates of comparison.
//!
//! The estimate is the median over draws of the preferences from their posterior. In each draw,
//! every undecided pair gets comparisons at its present rate and with their expected outcomes,
//! until [`Sequence`] decides it. The winner is certain at the earliest moment at which
//! [`Certainty`] has one.
//!
//! A policy slows down where it stops comparing pairs that it considers decided, so the truth tends
//! to be later than the estimate.

use crate::evidence::certainty::{Certainty, certain_winners};
use crate::evidence::history::History;
use crate::evidence::sequence::Sequence;
use crate::pairwise_sampling::theta;
use crate::{PolicyRng, Tally};

/// Most undecided pairs of a forecast.
const PAIRS_MAX: usize = 4000;
/// Approximate number of pairs over all draws.
const PAIRS_OVER_DRAWS: usize = 64_000;
/// Fewest and most draws.
const DRAWS: std::ops::RangeInclusive<usize> = 16..=200;
/// A pair that needs more comparisons than this counts as even.
const COMPARISONS_MAX: f64 = 1e12;

/// How many more time-steps, including self-duels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Median.
    pub estimate: f64,
    /// One draw in ten is below.
    pub low: f64,
    /// One draw in ten is above; `None` where these draws never end.
    pub high: Option<f64>,
}

/// Why there is no forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoForecast {
    /// No duels yet, and hence no rates.
    NoDuels,
    /// This many undecided pairs can change the winner.
    TooManyPairs(usize),
    /// Pairs that can change the winner are not compared at present; one of them.
    NotCompared(usize, usize),
    /// Possible winners look alike.
    Even,
}

/// Forecast from the undecided pairs of `certainty`, a [`Certainty`] of `tally`. 0 where the winner
/// is certain.
pub fn forecast(
    tally: &Tally,
    certainty: &Certainty,
    history: &History,
    rng: &mut PolicyRng,
) -> Result<Forecast, NoForecast> {
    if !certainty.certain().is_empty() {
        return Ok(Forecast { estimate: 0.0, low: 0.0, high: Some(0.0) });
    }
    if history.steps() == 0 {
        return Err(NoForecast::NoDuels);
    }
    let pairs = certainty.deciding_pairs();
    if pairs.len() > PAIRS_MAX {
        return Err(NoForecast::TooManyPairs(pairs.len()));
    }
    let rated: Vec<_> = pairs
        .iter()
        .map(|&(i, j)| (i, j, history.rate(i, j)))
        .filter(|(_, _, rate)| *rate > 0.0)
        .collect();
    let draws = (PAIRS_OVER_DRAWS / rated.len().max(1)).clamp(*DRAWS.start(), *DRAWS.end());
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
        Some(&(i, j)) => Err(NoForecast::NotCompared(i, j)),
        None => Err(NoForecast::Even),
    }
}

/// Steps until the winner is certain in one draw of the preferences; infinite where it never is.
fn end(
    tally: &Tally,
    certainty: &Certainty,
    rated: &[(usize, usize, f64)],
    rng: &mut PolicyRng,
) -> f64 {
    // (steps until decided, better, worse)
    let mut decided: Vec<(f64, usize, usize)> = rated
        .iter()
        .map(|&(i, j, rate)| {
            let p = theta(tally, i, j, rng);
            let steps =
                comparisons(certainty.sequence(i, j), tally.wins(i, j), tally.wins(j, i), p) / rate;
            if p > 0.5 { (steps, i, j) } else { (steps, j, i) }
        })
        .filter(|(steps, _, _)| steps.is_finite())
        .collect();
    decided.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let is_certain_after = |count: usize| {
        let rankers = certainty.roster().rankers();
        let mut least: Vec<usize> = (0..rankers).map(|i| certainty.certain_wins(i)).collect();
        let mut most: Vec<usize> = (0..rankers).map(|i| certainty.possible_wins(i)).collect();
        for &(_, better, worse) in &decided[..count] {
            least[better] += 1;
            most[worse] -= 1;
        }
        !certain_winners(&least, most.into_iter()).is_empty()
    };
    if !is_certain_after(decided.len()) {
        return f64::INFINITY;
    }
    let (mut too_few, mut enough) = (0, decided.len());
    while enough - too_few > 1 {
        let middle = (too_few + enough) / 2;
        if is_certain_after(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    decided[enough - 1].0
}

/// Further comparisons until a pair with these counts is decided if a share `p` of them is won;
/// infinite above [`COMPARISONS_MAX`].
fn comparisons(sequence: Sequence, wins: f64, losses: f64, p: f64) -> f64 {
    let is_decided = |more: f64| {
        let (wins, losses) = (wins + more * p, losses + more * (1.0 - p));
        (wins > losses) == (p > 0.5) && evidence(wins, losses) >= sequence.threshold()
    };
    let (mut too_few, mut enough) = (0.0, 1.0);
    while !is_decided(enough) {
        if enough > COMPARISONS_MAX {
            return f64::INFINITY;
        }
        (too_few, enough) = (enough, 2.0 * enough);
    }
    // to 1 %: the draw itself is noisier
    while enough - too_few > 0.01 * enough {
        let middle = (too_few + enough) / 2.0;
        if is_decided(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    enough
}

/// `ln M(1/2)` by Stirling's formula: fast, and exact enough for an estimate.
fn evidence(wins: f64, losses: f64) -> f64 {
    let plays = wins + losses;
    // half an outcome on either side keeps both logarithms finite
    let p = (wins + 0.5) / (plays + 1.0);
    let divergence = std::f64::consts::LN_2 + p * p.ln() + (1.0 - p) * (1.0 - p).ln();
    plays * divergence + 0.5 * (2.0 * std::f64::consts::PI * p * (1.0 - p) / plays).ln()
}
