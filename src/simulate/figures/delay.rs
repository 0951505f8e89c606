//! Figures of what late feedback costs.

use super::regret::{RegretFigure, Unfit};
use super::{Found, Size};
use crate::simulate::plot::{Plot, Scale, Series};
use crate::simulate::{Feedback, Report, Tournament};

/// Numbers of steps between two deliveries of feedback.
pub const BATCH_STEPS: [u64; 7] = [1, 10, 30, 100, 300, 1000, 3000];

/// One simulation for each of [`BATCH_STEPS`].
pub fn tournaments(
    figure: &RegretFigure,
    found: &Found,
    size: Size,
    seed: u64,
) -> Result<Vec<Tournament>, Unfit> {
    let mut all = Vec::new();
    for batch_steps in BATCH_STEPS {
        for tournament in figure.tournaments(found, size, seed)? {
            let feedback = Feedback { batch_steps, ..Feedback::default() };
            let name = format!("{} every {batch_steps} steps", found.name);
            all.push(Tournament { name, feedback, ..tournament });
        }
    }
    Ok(all)
}

/// Regret at the horizon against the number of steps between two deliveries.
pub fn plot(title: String, figure: &RegretFigure, reports: &[(u64, &Report)]) -> Option<Plot> {
    let (_, first) = reports.first()?;
    let series = figure
        .lines
        .iter()
        .map(|line| {
            let points = reports.iter().filter_map(|(steps, report)| {
                let curve = report.policies.iter().find(|curve| curve.policy == line.policy)?;
                let mut point = curve.checkpoints.last()?.plotted();
                point.x = *steps as f64;
                Some(point)
            });
            Series { label: line.policy.into(), joined: true, points: points.collect() }
        })
        .collect();
    let base = first.plot(figure.y_scale);
    Some(Plot {
        title,
        x_label: "steps between two deliveries of feedback".into(),
        y_label: format!("{} after {} steps", base.y_label, first.horizon),
        x_scale: Scale::Log,
        series,
        ..base
    })
}
