//! `rankduel plan`: how long an experiment will take, before it is created.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use super::CommandError;
use super::output::{print, print_json};
use crate::service::error::ServiceError;
use crate::service::reports::plan::{DaysOf, PlanReport, PlanRequest};

/// Plan an experiment: days until the verdict, and what it costs
///
/// Simulates the default policy. The best ranker beats the second best by the smallest difference
/// of interest; the plan covers one close rival, a ladder of rivals and equal ones. It needs no
/// server.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    request: PlanRequest,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// The response of POST /v1/plan
    Json,
}

/// Columns of the longest bar.
const BAR: f64 = 40.0;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let report = arguments.request.report(|| true).map_err(|error| match error {
        ServiceError::Invalid(errors) => {
            let details: Vec<_> = errors.into_iter().map(|error| error.detail).collect();
            CommandError::Usage(details.join("; ").replace('_', "-"))
        }
        error => CommandError::Failed(error.into()),
    })?;
    match arguments.format {
        Format::Text => print(text(&report)),
        Format::Json => print_json(&report),
    }
}

/// The sentence, and a bar of days for each difference.
fn text(report: &PlanReport) -> String {
    let mut text = format!("{}\n", report.sentence);
    if report.curve.is_empty() {
        return text;
    }
    text += "\nthe best wins   days (median): from     to\n";
    let all = report.curve.iter().map(|of| of.longest).fold(0.0, f64::max);
    for DaysOf { difference, shortest, longest } in &report.curve {
        let bar = "#".repeat((BAR * longest / all).ceil() as usize);
        let wins = 100.0 * (0.5 + difference);
        let _ = writeln!(text, "{wins:11.1} %   {shortest:>19}   {longest:>6}   {bar}");
    }
    text
}
