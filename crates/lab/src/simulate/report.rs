//! The result of a tournament: regret curves, as JSON or table.

use std::fmt::Write;

use serde::Serialize;
use special::Beta;

use super::run::Run;
use super::tournament::Tournament;
use dueling_bandits::preference::RegretKind;

/// The regret of several policies on one matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The matrix, as the user named it.
    pub matrix: String,
    /// Number of steps of each run, as done.
    pub horizon: u64,
    /// Number of runs of each policy, as done.
    pub runs: u64,
    pub regret: RegretKind,
    /// One curve for each policy, in the given order.
    pub policies: Vec<Curve>,
}

/// The cumulative regret of one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The policy, as the user wrote it.
    pub policy: String,
    /// The points in ascending order of the step. The last one is the horizon.
    pub checkpoints: Vec<Point>,
    /// Processor time of a step in microseconds, including the answer of the searcher: the time of
    /// the threads over all runs, divided by the number of steps.
    pub microseconds_per_step: f64,
    /// The cumulative regret of each run at each checkpoint.
    #[serde(skip)]
    pub runs: Vec<Vec<f64>>,
}

/// Cumulative regret after `step` steps, over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    pub step: u64,
    pub mean: f64,
    /// Median. Far below the mean if a few bad runs make the mean.
    pub median: f64,
    /// Standard error of the mean; `None` for a single run.
    pub standard_error: Option<f64>,
    /// Standard deviation between runs (divisor `runs - 1`); `None` for a single run.
    pub standard_deviation: Option<f64>,
    /// Half of the 95 % confidence interval of the mean, by Student's t; `None` for a single run.
    pub half_interval: Option<f64>,
    /// Half of the 95 % confidence interval of the standard deviation, by the jackknife and
    /// Student's t; `None` for fewer than three runs.
    pub deviation_half_interval: Option<f64>,
}

impl Point {
    /// Mean and spread of `regrets`. Sums are in the given order.
    pub fn of(step: u64, regrets: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let runs = regrets.len() as f64;
        let mean = regrets.clone().sum::<f64>() / runs;
        let squares: f64 = regrets.clone().map(|regret| (regret - mean) * (regret - mean)).sum();
        let standard_deviation = (runs > 1.0).then(|| (squares / (runs - 1.0)).sqrt());
        let standard_error = standard_deviation.map(|deviation| deviation / runs.sqrt());
        let half_interval = standard_error.map(|error| student_t(runs - 1.0) * error);
        let mut sorted: Vec<f64> = regrets.collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        let deviation_half_interval = (runs > 2.0)
            .then(|| student_t(runs - 1.0) * jackknife_of_deviation(&sorted, mean, squares));
        Self {
            step,
            mean,
            median,
            standard_error,
            standard_deviation,
            half_interval,
            deviation_half_interval,
        }
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom. With a few runs, 1.96
/// times the standard error is too narrow.
fn student_t(freedom: f64) -> f64 {
    // Pr(|T| > t) = I_x(freedom / 2, 1/2) at x = freedom / (freedom + t²)
    let (a, b) = (freedom / 2.0, 0.5);
    let x = 0.05.inv_inc_beta(a, b, a.ln_beta(b));
    (freedom * (1.0 - x) / x).sqrt()
}

/// The standard error of the standard deviation by the jackknife, of at least three values with
/// this mean and this sum of squared differences to it.
fn jackknife_of_deviation(values: &[f64], mean: f64, squares: f64) -> f64 {
    let runs = values.len() as f64;
    let without_one: Vec<f64> = values
        .iter()
        .map(|value| {
            let less = (value - mean) * (value - mean) * runs / (runs - 1.0);
            ((squares - less).max(0.0) / (runs - 2.0)).sqrt()
        })
        .collect();
    let centre = without_one.iter().sum::<f64>() / runs;
    let spread: f64 = without_one.iter().map(|of| (of - centre) * (of - centre)).sum();
    ((runs - 1.0) / runs * spread).sqrt()
}

impl Report {
    /// The report of the runs of each policy, over the steps that the first run of every policy has
    /// reached; `None` if one of them has reached no checkpoint.
    pub fn of(tournament: &Tournament, checkpoints: &[u64], runs: &[Vec<Run>]) -> Option<Self> {
        let first_reached = |runs: &Vec<Run>| runs.first().map_or(0, |run| run.regrets.len());
        let depth = runs.iter().map(first_reached).min()?;
        let &horizon = checkpoints[..depth].last()?;
        let reached =
            |runs: &Vec<Run>| runs.iter().take_while(|run| run.regrets.len() >= depth).count();
        let count = runs.iter().map(reached).min()?;
        let curves = tournament
            .entrants
            .iter()
            .zip(runs)
            .map(|(entrant, runs)| Curve {
                policy: entrant.text.clone(),
                checkpoints: (0..depth)
                    .map(|at| {
                        Point::of(checkpoints[at], runs[..count].iter().map(|run| run.regrets[at]))
                    })
                    .collect(),
                microseconds_per_step: {
                    let time: f64 = runs[..count].iter().map(|run| run.time.as_secs_f64()).sum();
                    let steps: u64 = runs[..count].iter().map(|run| run.steps).sum();
                    time * 1e6 / steps as f64
                },
                runs: runs[..count].iter().map(|run| run.regrets[..depth].to_vec()).collect(),
            })
            .collect();
        Some(Self {
            matrix: tournament.name.clone(),
            horizon,
            runs: count as u64,
            regret: tournament.regret_kind,
            policies: curves,
        })
    }

    /// The report with the horizon as its only checkpoint.
    pub fn at_horizon(mut self) -> Self {
        for curve in &mut self.policies {
            curve.checkpoints.drain(..curve.checkpoints.len().saturating_sub(1));
        }
        self
    }

    fn regret_name(&self) -> &'static str {
        match self.regret {
            RegretKind::Copeland => "Copeland",
            RegretKind::Condorcet => "Condorcet",
            RegretKind::Borda => "Borda",
            RegretKind::Weak => "weak Condorcet",
        }
    }
}

/// A report as a table to read: mean ± standard error (standard deviation) at the powers of ten and
/// the horizon, and the median at the horizon.
pub fn table(report: &Report) -> String {
    let regret = report.regret_name();
    let shown = |point: &Point| {
        point.step == report.horizon || (point.step >= 100 && is_power_of_ten(point.step))
    };
    let mut rows = vec![vec!["policy".to_string()]];
    if let Some(curve) = report.policies.first() {
        rows[0].extend(
            curve.checkpoints.iter().filter(|p| shown(p)).map(|p| format!("t = {}", p.step)),
        );
    }
    rows[0].push("median".into());
    rows[0].push("µs/step".into());
    for curve in &report.policies {
        let mut row = vec![curve.policy.clone()];
        row.extend(curve.checkpoints.iter().filter(|p| shown(p)).map(cell));
        row.push(curve.checkpoints.last().map(|point| number(point.median)).unwrap_or_default());
        row.push(number(curve.microseconds_per_step));
        rows.push(row);
    }
    let runs = if report.runs == 1 { "1 run" } else { &format!("{} runs", report.runs) };
    let mut text = format!(
        "{}: cumulative {regret} regret after t steps, {runs}; mean ± standard error (standard deviation), median at the end\n",
        report.matrix
    );
    align(&rows, &mut text);
    text
}

fn cell(point: &Point) -> String {
    match (point.standard_error, point.standard_deviation) {
        (Some(error), Some(deviation)) => {
            format!("{} ± {} ({})", number(point.mean), number(error), number(deviation))
        }
        _ => number(point.mean),
    }
}

/// At least three digits, never in exponent form.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn is_power_of_ten(mut step: u64) -> bool {
    while step >= 10 && step.is_multiple_of(10) {
        step /= 10;
    }
    step == 1
}

/// Aligns columns: the first one left, the others right.
fn align(rows: &[Vec<String>], text: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
}
