//! Regret curves as CSV: written, and read again to draw a plot anew.

use super::report::{Curve, Point, Report};
use dueling_bandits::preference::RegretKind;
use serde::Deserialize;

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

/// A number with at most seven significant digits.
fn seven_digits(value: f64) -> String {
    format!("{value:.6e}").parse::<f64>().unwrap_or(value).to_string()
}

/// A CSV that [`write`] did not write.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidCsv {
    /// Another header.
    #[error("the first line is not `{}`", HEADER.join(","))]
    Header,
    /// A line with a missing or malformed field.
    #[error("line {0} is malformed")]
    Line(usize),
}

/// Reads what [`write`] has written. The file does not name the kind of regret, and has no
/// processor times: these are 0.
pub fn read(text: &str, regret: RegretKind) -> Result<Vec<Report>, InvalidCsv> {
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    if csv.headers().map_err(|_| InvalidCsv::Header)? != HEADER.as_slice() {
        return Err(InvalidCsv::Header);
    }
    let mut curves: Vec<(String, u64, Curve)> = Vec::new();
    for (index, row) in csv.deserialize().enumerate() {
        let row: Row = row.map_err(|_| InvalidCsv::Line(index + 2))?;
        match curves.last_mut().filter(|last| row.continues(last)) {
            Some((_, _, curve)) => curve.checkpoints.push(row.point()),
            None => {
                let checkpoints = vec![row.point()];
                let curve = Curve { policy: row.policy, checkpoints, microseconds_per_step: 0.0 };
                curves.push((row.matrix, row.runs, curve));
            }
        }
    }
    let mut reports: Vec<Report> = Vec::new();
    for (matrix, runs, curve) in curves {
        let horizon = curve.checkpoints.last().map_or(0, |point| point.step);
        let belongs = |report: &&mut Report| {
            (&report.matrix, report.horizon, report.runs) == (&matrix, horizon, runs)
                && report.policies.iter().all(|other| other.policy != curve.policy)
        };
        match reports.last_mut().filter(belongs) {
            Some(report) => report.policies.push(curve),
            None => reports.push(Report { matrix, horizon, runs, regret, policies: vec![curve] }),
        }
    }
    Ok(reports)
}

/// A line of the file.
#[derive(Deserialize)]
struct Row {
    matrix: String,
    runs: u64,
    policy: String,
    step: u64,
    mean: f64,
    median: f64,
    standard_error: Option<f64>,
    standard_deviation: Option<f64>,
    half_interval: Option<f64>,
    deviation_half_interval: Option<f64>,
}

impl Row {
    fn point(&self) -> Point {
        Point {
            step: self.step,
            mean: self.mean,
            median: self.median,
            standard_error: self.standard_error,
            standard_deviation: self.standard_deviation,
            half_interval: self.half_interval,
            deviation_half_interval: self.deviation_half_interval,
        }
    }

    /// Whether this is the next point of a curve.
    fn continues(&self, (matrix, runs, curve): &(String, u64, Curve)) -> bool {
        let after = curve.checkpoints.last().is_some_and(|last| last.step < self.step);
        (&self.matrix, self.runs, &self.policy) == (matrix, *runs, &curve.policy) && after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let point = |step: u64, factor: f64| {
            Point::of(step, [1.5, 2.25, 4.0].map(|regret| regret * factor).into_iter())
        };
        let curve = |policy: &str, last: u64| Curve {
            policy: policy.into(),
            checkpoints: vec![point(1, 1.0), point(last, 123_456.789)],
            microseconds_per_step: 0.0,
        };
        let report = |horizon: u64, policies: &[&str]| Report {
            matrix: "a \"matrix\", of 5".into(),
            horizon,
            runs: 3,
            regret: RegretKind::Copeland,
            policies: policies.iter().map(|policy| curve(policy, horizon)).collect(),
        };
        // one policy twice: separate runs for each horizon, here of the same length
        let reports = [report(10, &["a:x=1,y=2", "b"]), report(7, &["b"]), report(7, &["b"])];
        let text = write(&reports);
        let again = read(&text, RegretKind::Copeland).expect("its own output");
        assert_eq!(write(&again), text);
        let shape = |reports: &[Report]| -> Vec<_> {
            let of = |report: &Report| (report.horizon, report.runs, report.policies.len());
            reports.iter().map(of).collect()
        };
        assert_eq!(shape(&again), shape(&reports));
        assert_eq!(again[0].matrix, reports[0].matrix);
        assert_eq!(again[0].policies[0].policy, "a:x=1,y=2");
        assert_eq!(seven_digits(123_456_789.0), "123456800");
        assert_eq!(seven_digits(0.000_123_456_78), "0.0001234568");
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |text: &str| read(text, RegretKind::Copeland).expect_err("malformed");
        assert_eq!(refused("rankers,subsets\n1,2\n"), InvalidCsv::Header);
        assert_eq!(
            refused(&format!("{}\nm,3,p,1,1,1,,,,\nm,3,p,x\n", HEADER.join(","))),
            InvalidCsv::Line(3)
        );
    }
}
