//! Figures of the standard deviation of regret between runs.

use crate::simulate::plot::{Bar, Bars, legend};
use crate::simulate::report::Report;

/// The policy whose mean regret is the reference, if it is in the figure.
const REFERENCE: &str = "ecw-rmed";

/// The standard deviation of each policy's regret at the horizon, divided by the mean regret of
/// ECW-RMED, as in the paper. Without ECW-RMED in the figure, it is divided by the policy's own
/// mean.
pub fn bars(title: String, report: &Report) -> Bars {
    let reference = report.policies.iter().find(|curve| curve.policy == REFERENCE);
    let reference = reference.and_then(|curve| curve.checkpoints.last()).map(|point| point.mean);
    let bars = report
        .policies
        .iter()
        .filter_map(|curve| {
            let last = curve.checkpoints.last()?;
            let share = last.standard_deviation? / reference.unwrap_or(last.mean);
            let text = format!("{:.1} %", share * 100.0);
            Some(Bar { label: legend::words(&curve.policy), value: share, text })
        })
        .collect();
    let mean = if reference.is_some() { "mean regret of ECW-RMED" } else { "its mean" };
    Bars {
        title,
        axis_label: format!("standard deviation of regret / {mean}"),
        bars,
        note: format!("{} runs of {} steps", report.runs, report.horizon),
    }
}
