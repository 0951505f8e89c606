//! The report of a calibration, over all experiments.

use serde::Serialize;
use special::Beta as _;

use super::truth::{Look, LookForecast, ROUNDING, holds};
use super::{Decision, Experiment, Trial};
use crate::simulate::information_bound::{Least, information_bound};
use dueling_bandits::evidence::Estimate;

/// With more rankers there is no information bound: the linear program takes too long.
const MOST_BOUNDED: usize = 32;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The matrix, as the user named it.
    pub matrix: String,
    /// The policy, as the user wrote it.
    pub policy: String,
    pub rankers: usize,
    /// Number of experiments, as done.
    pub runs: u64,
    /// Number of steps of each.
    pub horizon: u64,
    /// The estimates of regret, at each look.
    pub regret: Vec<RegretCalibration>,
    /// True Copeland regret of the whole experiments.
    pub total_regret: TotalRegret,
    pub verdict: VerdictCalibration,
}

/// Estimates of cumulative regret after `step` steps, over all experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegretCalibration {
    pub step: u64,
    /// Mean of the true Copeland regret.
    pub truth: f64,
    /// Mean of its plug-in estimate.
    pub plug_in: f64,
    /// Mean of its posterior mean.
    pub posterior: f64,
    /// Mean length of its 95 % credible interval.
    pub length: f64,
    /// Share of experiments whose interval includes the truth.
    pub coverage: f64,
    /// Share of experiments whose interval is below the truth, so that the cost is understated.
    pub below: f64,
    /// Condorcet regret, if the matrix has a Condorcet winner and there are estimates: mean truth,
    /// mean estimate, coverage, and share of experiments with an estimate.
    pub condorcet: Option<[f64; 4]>,
}

/// Verdicts over all experiments, each at the first step at which it was certain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictCalibration {
    pub confidence: f64,
    pub margin: f64,
    /// Number of experiments with a verdict.
    pub decided: u64,
    /// Number of verdicts for a ranker that is not a Copeland winner at that step.
    pub wrong: u64,
    /// Number of verdicts for a ranker that was no Copeland winner at any step so far. Differs from
    /// `wrong` only if the preferences drift.
    pub never_right: u64,
    /// Upper end of the exact 95 % interval (Clopper and Pearson) of the share of wrong verdicts
    /// among all experiments.
    pub wrong_share_at_most: f64,
    /// Median number of steps to the verdict. An experiment without a verdict counts as longer than
    /// all others; `None` if the median has none.
    pub median_steps: Option<u64>,
    /// 90 % quantile of the same.
    pub p90_steps: Option<u64>,
    /// Mean true Copeland regret up to the verdict, over the experiments with a verdict.
    pub regret_at_verdict: Option<f64>,
    /// The least mean number of duels to a verdict, and the least mean regret, of any policy and
    /// rule; `None` if no number of duels is enough, or with more than 32 rankers.
    pub information_bound: Option<Least>,
    /// Median over the looks before a verdict of (remaining steps to the verdict) / (forecast
    /// number of steps), and the number of these looks.
    pub forecast_ratio: Option<(f64, usize)>,
    /// Share of these looks whose true number of steps was within the range of the forecast.
    pub forecast_within: Option<f64>,
    /// Share of these looks whose true number of steps was below that range.
    pub forecast_below: Option<f64>,
}

/// True Copeland regret at the horizon, over all experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TotalRegret {
    pub mean: f64,
    pub standard_error: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

impl Calibration {
    /// The results of one or more experiments of `trial`.
    pub(super) fn of(trial: &Trial, experiments: &[Experiment]) -> Self {
        let looks = trial.looks.iter().enumerate().map(|(at, &step)| {
            let looks: Vec<&Look> =
                experiments.iter().map(|experiment| &experiment.looks[at]).collect();
            RegretCalibration::of(step, &looks)
        });
        Self {
            matrix: trial.name.clone(),
            policy: trial.entrant.text.clone(),
            rankers: trial.matrix.rankers(),
            runs: experiments.len() as u64,
            horizon: trial.horizon,
            regret: looks.collect(),
            total_regret: TotalRegret::of(experiments.iter().map(|one| one.regret).collect()),
            verdict: VerdictCalibration::of(trial, experiments),
        }
    }
}

impl VerdictCalibration {
    fn of(trial: &Trial, experiments: &[Experiment]) -> Self {
        let runs = experiments.len() as u64;
        let decided: Vec<Decision> =
            experiments.iter().filter_map(|experiment| experiment.verdict).collect();
        let count = |of: fn(&Decision) -> bool| decided.iter().filter(|one| of(one)).count() as u64;
        let wrong = count(|decision| decision.is_wrong);
        let mut steps: Vec<u64> = decided.iter().map(|decision| decision.step).collect();
        steps.sort_unstable();
        // experiments without a verdict come last
        let steps_at = |share: f64| steps.get((share * (runs - 1) as f64).round() as usize);
        let error = 1.0 - trial.target.confidence;
        let regret: f64 = decided.iter().map(|decision| decision.regret).sum();
        let forecasts = checked_forecasts(experiments);
        let has_forecasts = !forecasts.is_empty();
        let share = |of: fn(&CheckedForecast) -> bool| {
            forecasts.iter().filter(|it| of(it)).count() as f64 / forecasts.len() as f64
        };
        let (below, above) = (share(|it| it.is_below), share(|it| it.is_above));
        Self {
            confidence: trial.target.confidence,
            margin: trial.target.margin,
            decided: decided.len() as u64,
            wrong,
            never_right: count(|decision| decision.was_never_right),
            wrong_share_at_most: share_at_most(wrong, runs),
            median_steps: steps_at(0.5).copied(),
            p90_steps: steps_at(0.9).copied(),
            regret_at_verdict: (!decided.is_empty()).then(|| regret / decided.len() as f64),
            information_bound: (trial.matrix.rankers() <= MOST_BOUNDED)
                .then(|| information_bound(&trial.matrix, error, trial.target.margin))
                .flatten(),
            forecast_ratio: has_forecasts
                .then(|| (forecasts[forecasts.len() / 2].ratio, forecasts.len())),
            forecast_within: has_forecasts.then_some(1.0 - below - above),
            forecast_below: has_forecasts.then_some(below),
        }
    }
}

/// A forecast before a verdict, compared with the number of steps that it took.
struct CheckedForecast {
    /// The true number of steps, as a multiple of the forecast one.
    ratio: f64,
    /// Whether the true number is below the range of the forecast, or above it.
    is_below: bool,
    is_above: bool,
}

/// The forecasts of all looks before a verdict, ascending by their ratio.
fn checked_forecasts(experiments: &[Experiment]) -> Vec<CheckedForecast> {
    let decided = experiments.iter().filter_map(|it| Some((it.verdict?.step, &it.looks)));
    let looks = decided.flat_map(|(end, looks)| looks.iter().map(move |look| (end, look)));
    let checked = looks.filter_map(|(end, look)| {
        let LookForecast { step, estimate, low, high } = look.forecast?;
        let took = end.checked_sub(step)? as f64;
        let (is_below, is_above) = (took < low, took > high);
        Some(CheckedForecast { ratio: took / estimate, is_below, is_above })
    });
    let mut checked: Vec<_> = checked.collect();
    checked.sort_unstable_by(|a, b| a.ratio.total_cmp(&b.ratio));
    checked
}

impl TotalRegret {
    fn of(mut regret: Vec<f64>) -> Self {
        regret.sort_unstable_by(f64::total_cmp);
        let runs = regret.len() as f64;
        let mean = regret.iter().sum::<f64>() / runs;
        let squares: f64 = regret.iter().map(|value| (value - mean).powi(2)).sum();
        let at = |share: f64| regret[(share * (runs - 1.0)).round() as usize];
        Self {
            mean,
            standard_error: (squares / (runs * (runs - 1.0).max(1.0))).sqrt(),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

impl RegretCalibration {
    fn of(step: u64, looks: &[&Look]) -> Self {
        let mean = |of: &dyn Fn(&Look) -> f64| {
            looks.iter().map(|look| of(look)).sum::<f64>() / looks.len() as f64
        };
        let condorcet: Vec<_> = looks.iter().filter_map(|look| look.condorcet).collect();
        let of_those = |of: &dyn Fn(f64, Estimate) -> f64| {
            condorcet.iter().map(|&(truth, estimate)| of(truth, estimate)).sum::<f64>()
                / condorcet.len() as f64
        };
        Self {
            step,
            truth: mean(&|look| look.truth),
            plug_in: mean(&|look| look.plug_in),
            posterior: mean(&|look| look.estimate.mean),
            length: mean(&|look| look.estimate.high - look.estimate.low),
            coverage: mean(&|look| f64::from(holds(look.estimate, look.truth))),
            below: mean(&|look| f64::from(look.estimate.high + ROUNDING < look.truth)),
            condorcet: (!condorcet.is_empty()).then(|| {
                [
                    of_those(&|truth, _| truth),
                    of_those(&|_, estimate| estimate.mean),
                    of_those(&|truth, estimate| f64::from(holds(estimate, truth))),
                    condorcet.len() as f64 / looks.len() as f64,
                ]
            }),
        }
    }
}

/// The median of what some of `runs` experiments took; `None` if fewer than half have it.
pub(in crate::simulate) fn median(took: impl Iterator<Item = u64>, runs: u64) -> Option<u64> {
    let mut took: Vec<u64> = took.collect();
    took.sort_unstable();
    took.get((runs as usize - 1) / 2).copied()
}

/// Upper end of the exact two-sided 95 % interval of a share, for `hits` of `all`.
pub(in crate::simulate) fn share_at_most(hits: u64, all: u64) -> f64 {
    if hits >= all {
        return 1.0;
    }
    let (a, b) = (hits as f64 + 1.0, (all - hits) as f64);
    0.975_f64.inv_inc_beta(a, b, a.ln_beta(b))
}
