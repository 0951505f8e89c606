//! The true values that estimates of an experiment are compared with.

use dueling_bandits::evidence::{Estimate, Posterior, Target};
use dueling_bandits::preference::{PreferenceMatrix, Regret};
use dueling_bandits::{PolicyRng, Tally};

/// Tolerance for rounding where the truth is exactly at a bound.
pub(super) const ROUNDING: f64 = 1e-9;

/// The estimates of one experiment at one step.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// The true Copeland regret so far, its plug-in estimate, and its posterior estimate.
    pub(super) truth: f64,
    pub(super) plug_in: f64,
    pub(super) estimate: Estimate,
    /// The true Condorcet regret and its estimate.
    pub(super) condorcet: Option<(f64, Estimate)>,
    /// `None` without a forecast, and after the verdict.
    pub(super) forecast: Option<LookForecast>,
}

/// A forecast of the steps to the verdict.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookForecast {
    /// Steps so far.
    pub(super) step: u64,
    /// Further steps, and the ends of their range.
    pub(super) estimate: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Whether a verdict for `ranker` is wrong: some other ranker beats more rankers by more than the
/// margin than `ranker` can beat if all pairs within the margin go its way.
pub(in crate::simulate) fn is_wrong(
    matrix: &PreferenceMatrix,
    target: Target,
    ranker: usize,
) -> bool {
    let (rankers, margin) = (matrix.rankers(), target.margin);
    let p = |i: usize, j: usize| matrix.win_probability(i, j);
    let others = |i: usize| (0..rankers).filter(move |&j| j != i);
    let most = others(ranker).filter(|&j| p(ranker, j) > 0.5 - margin).count();
    let surely_beaten =
        |j: usize| others(j).filter(|&x| p(j, x) > 0.5 && p(j, x) >= 0.5 + margin).count();
    (0..rankers).any(|j| surely_beaten(j) > most)
}

/// Whether the interval of `estimate` includes `truth`.
pub(super) fn holds(estimate: Estimate, truth: f64) -> bool {
    let rounding = ROUNDING * (1.0 + truth);
    (estimate.low - rounding..=estimate.high + rounding).contains(&truth)
}

/// The true values that an experiment estimates.
pub(super) struct Truth {
    pub(super) copeland: Regret,
    condorcet: Option<Regret>,
}

impl Truth {
    pub(super) fn new(matrix: &PreferenceMatrix) -> Self {
        Self { copeland: Regret::copeland(matrix), condorcet: Regret::condorcet(matrix).ok() }
    }

    /// The estimates and the truth. `name` maps a ranker to its index in the matrix.
    pub(super) fn look(
        &self,
        tally: &Tally,
        shown: &[u64],
        name: impl Fn(usize) -> usize,
        rng: &mut PolicyRng,
    ) -> Look {
        let mut by_name = vec![0; shown.len()];
        shown.iter().enumerate().for_each(|(i, &count)| by_name[name(i)] = count);
        let drawn = Posterior::new(tally).regret(&[shown], Posterior::draws(tally.rankers()), rng);
        let scores: Vec<usize> = (0..tally.rankers()).map(|i| tally.copeland_score(i)).collect();
        Look {
            truth: self.copeland.of_appearances(&by_name),
            plug_in: Regret::from_copeland_scores(&scores).of_appearances(shown),
            estimate: drawn.copeland[0],
            condorcet: match (&self.condorcet, drawn.condorcet) {
                (Some(regret), Some((estimate, _))) => {
                    Some((regret.of_appearances(&by_name), estimate))
                }
                _ => None,
            },
            forecast: None,
        }
    }
}
