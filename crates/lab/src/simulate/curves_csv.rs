//! Regret curves as CSV.

use super::report::Report;

const HEADER: [&str; 10] = [
    "matrix",
    "runs",
    "policy",
    "step",
    "mean",
    "median",
    "standard_error",
    "standard_deviation",
    "half_interval",
    "deviation_half_interval",
];

/// Reports as CSV with a header and one line for each matrix, policy and checkpoint. Numbers have
/// seven digits. An unknown spread is empty.
pub fn write(reports: &[Report]) -> String {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let in_memory = "writing to memory does not fail";
    csv.write_record(HEADER).expect(in_memory);
    for report in reports {
        for curve in &report.policies {
            for point in &curve.checkpoints {
                let spread = [
                    point.standard_error,
                    point.standard_deviation,
                    point.half_interval,
                    point.deviation_half_interval,
                ];
                let known = |value: Option<f64>| value.map(seven_digits).unwrap_or_default();
                let (runs, step) = (report.runs.to_string(), point.step.to_string());
                let means = [point.mean, point.median].map(seven_digits);
                let fields = [&report.matrix, &runs, &curve.policy, &step];
                csv.write_record(fields.into_iter().chain(&means).chain(&spread.map(known)))
                    .expect(in_memory);
            }
        }
    }
    String::from_utf8(csv.into_inner().expect(in_memory)).expect("made of text")
}

/// Every run, as CSV with a header and one line for each matrix, policy, run and checkpoint. Runs
/// of one number on one matrix meet the same searchers, so policies can be compared run by run.
pub fn write_runs(reports: &[Report]) -> String {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let in_memory = "writing to memory does not fail";
    csv.write_record(["matrix", "policy", "run", "step", "regret"]).expect(in_memory);
    for report in reports {
        for curve in &report.policies {
            for (run, regrets) in curve.runs.iter().enumerate() {
                for (point, regret) in curve.checkpoints.iter().zip(regrets) {
                    let numbers = [run.to_string(), point.step.to_string(), seven_digits(*regret)];
                    csv.write_record([&report.matrix, &curve.policy].into_iter().chain(&numbers))
                        .expect(in_memory);
                }
            }
        }
    }
    String::from_utf8(csv.into_inner().expect(in_memory)).expect("made of text")
}

/// A number with at most seven significant digits.
fn seven_digits(value: f64) -> String {
    format!("{value:.6e}").parse::<f64>().unwrap_or(value).to_string()
}
