//! Figures of the standard deviation of regret between runs.

use crate::simulate::plot::{Bar, Bars, Look, grouped, legend};
use crate::simulate::report::{Curve, Report};

/// The policy whose mean regret is the reference, if it is in the figure.
const REFERENCE: &str = "ecw-rmed";

/// The standard deviation of each policy's regret at the horizon, divided by the mean regret of
/// ECW-RMED, as in the paper. Without ECW-RMED in the figure, it is divided by the policy's own
/// mean.
pub fn bars(title: String, report: &Report) -> Bars {
    let reference = report.policies.iter().find(|curve| curve.policy == REFERENCE);
    let reference = reference.and_then(|curve| curve.checkpoints.last()).map(|point| point.mean);
    let looks = legend::looks(report.policies.iter().map(|curve| curve.policy.as_str()));
    let bar = |(curve, look): (&Curve, Look)| {
        let last = curve.checkpoints.last()?;
        let per_cent = 100.0 / reference.unwrap_or(last.mean);
        let value = last.standard_deviation? * per_cent;
        let half = last.deviation_half_interval.unwrap_or(0.0) * per_cent;
        Some(Bar {
            label: legend::words(&curve.policy),
            look,
            value,
            interval: ((value - half).max(0.0), value + half),
            text: format!("{value:.1} %"),
        })
    };
    let bars = report.policies.iter().zip(looks).filter_map(bar).collect();
    let mean = if reference.is_some() { "mean regret of ECW-RMED" } else { "its mean" };
    Bars {
        title,
        axis_label: format!("standard deviation of regret / {mean} (%)"),
        bars,
        note: format!(
            "{} runs of {} steps; error bars: 95 % confidence interval of the standard deviation \
             by the jackknife, the mean taken as exact",
            report.runs,
            grouped(report.horizon)
        ),
    }
}
