//! Figures of how much regret differs from run to run.

use crate::simulate::Report;
use crate::simulate::plot::{Bar, Bars};

/// The policy whose mean is the yardstick, where it is in the figure.
const YARDSTICK: &str = "ecw-rmed";

/// Standard deviation of each policy's regret at the horizon, as a share of the mean regret of
/// ECW-RMED, as the paper has it; without ECW-RMED in the figure, as a share of the policy's own
/// mean.
pub fn bars(title: String, report: &Report) -> Bars {
    let yardstick = report.policies.iter().find(|curve| curve.policy == YARDSTICK);
    let yardstick = yardstick.and_then(|curve| curve.checkpoints.last()).map(|point| point.mean);
    let bars = report
        .policies
        .iter()
        .filter_map(|curve| {
            let last = curve.checkpoints.last()?;
            let share = last.standard_deviation? / yardstick.unwrap_or(last.mean);
            let text = format!("{:.1} %", share * 100.0);
            Some(Bar { label: curve.policy.clone(), value: share, text })
        })
        .collect();
    let mean = if yardstick.is_some() { "mean regret of ECW-RMED" } else { "its mean" };
    Bars {
        title,
        axis_label: format!("standard deviation of regret / {mean}"),
        bars,
        note: format!("{} runs of {} steps", report.runs, report.horizon),
    }
}
