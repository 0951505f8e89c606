//! The result of a tournament: regret curves, as JSON, CSV, table or plot.

use std::fmt::Write;

use serde::Serialize;

use super::plot::{Plot, PlotPoint, Scale, Series};
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
    /// The kind of regret.
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
}

/// Cumulative regret after `step` steps, over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Number of steps.
    pub step: u64,
    /// Mean.
    pub mean: f64,
    /// Standard error of the mean; `None` for a single run.
    pub standard_error: Option<f64>,
    /// Standard deviation between runs (divisor `runs - 1`); `None` for a single run.
    pub standard_deviation: Option<f64>,
}

impl Point {
    /// Mean and spread of `regrets`. Sums are in the given order.
    pub(super) fn of(step: u64, regrets: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let runs = regrets.len() as f64;
        let mean = regrets.clone().sum::<f64>() / runs;
        let squares: f64 = regrets.map(|regret| (regret - mean) * (regret - mean)).sum();
        let standard_deviation = (runs > 1.0).then(|| (squares / (runs - 1.0)).sqrt());
        let standard_error = standard_deviation.map(|deviation| deviation / runs.sqrt());
        Self { step, mean, standard_error, standard_deviation }
    }

    /// The point in a plot, with its 95 % confidence interval.
    pub fn plotted(&self) -> PlotPoint {
        let half_band = 1.96 * self.standard_error.unwrap_or(0.0);
        PlotPoint {
            x: self.step as f64,
            y: self.mean,
            low: self.mean - half_band,
            high: self.mean + half_band,
        }
    }
}

/// Reports as JSON: one object, or an array if there are several.
pub fn json(reports: &[Report]) -> serde_json::Result<String> {
    match reports {
        [report] => serde_json::to_string_pretty(report),
        several => serde_json::to_string_pretty(several),
    }
}

/// Reports as CSV with a header and one line for each matrix, policy and checkpoint. An unknown
/// spread is empty.
pub fn csv(reports: &[Report]) -> String {
    let mut text = String::from("matrix,policy,step,mean,standard_error,standard_deviation\n");
    let known = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for report in reports {
        for curve in &report.policies {
            for point in &curve.checkpoints {
                let (error, deviation) =
                    (known(point.standard_error), known(point.standard_deviation));
                let (matrix, policy) = (quoted(&report.matrix), quoted(&curve.policy));
                let _ = writeln!(
                    text,
                    "{matrix},{policy},{},{},{error},{deviation}",
                    point.step, point.mean
                );
            }
        }
    }
    text
}

/// A field of a CSV file, quoted if necessary.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}

impl Report {
    /// The report as a plot over logarithmic time, with a band of 1.96 standard errors to either
    /// side. The plot omits the first thousandth of the time, in which policies learn little.
    pub fn plot(&self, y_scale: Scale) -> Plot {
        let first_step = self.horizon / 1000;
        let runs = if self.runs == 1 {
            "one run".to_string()
        } else {
            format!("mean of {} runs, with the 95 % confidence band of the mean", self.runs)
        };
        Plot {
            title: self.matrix.clone(),
            x_label: "t (steps)".into(),
            y_label: format!("cumulative {} regret", self.regret_name()),
            x_scale: Scale::Log,
            y_scale,
            series: self.policies.iter().map(|curve| curve.series(first_step)).collect(),
            note: runs,
        }
    }

    fn regret_name(&self) -> &'static str {
        match self.regret {
            RegretKind::Copeland => "Copeland",
            RegretKind::Condorcet => "Condorcet",
        }
    }
}

impl Curve {
    /// The curve in a plot, from `first_step` on.
    pub fn series(&self, first_step: u64) -> Series {
        let shown = self.checkpoints.iter().filter(|point| point.step >= first_step);
        let points = shown.map(Point::plotted).collect();
        Series { label: self.policy.clone(), joined: true, points }
    }
}

/// A report as a table to read: mean ± standard error (standard deviation) at the powers of ten and
/// the horizon.
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
    rows[0].push("µs/step".into());
    for curve in &report.policies {
        let mut row = vec![curve.policy.clone()];
        row.extend(curve.checkpoints.iter().filter(|p| shown(p)).map(cell));
        row.push(number(curve.microseconds_per_step));
        rows.push(row);
    }
    let runs = if report.runs == 1 { "1 run" } else { &format!("{} runs", report.runs) };
    let mut text = format!(
        "{}: cumulative {regret} regret after t steps, {runs}; mean ± standard error (standard deviation)\n",
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
