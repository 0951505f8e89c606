//! `rankduel plan`: how long an experiment will take, before it is created.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use super::CommandError;
use super::output::{print, print_json};
use crate::service::error::ServiceError;
use crate::service::reports::plan::{PlanReport, PlanRequest};

/// Plan an experiment: days until the verdict, and what it costs
///
/// Simulates the default policy on plausible preferences: the best ranker beats the second best by
/// the smallest difference of interest, and the others are spread below. Needs no server.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of rankers, 2 to 100
    #[arg(long, value_name = "N")]
    rankers: usize,

    /// The smallest difference of interest, above one half: with 0.04 the best ranker wins 54 %
    /// against the second best
    #[arg(long, value_name = "SHARE")]
    difference: f64,

    /// Pages a day on which a duel is shown
    #[arg(long, value_name = "N")]
    pages_per_day: f64,

    /// Share of these pages whose clicks name a winner
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    answered: f64,

    /// Share of these answers that come from users who answered before
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    repeats: f64,

    /// Confidence of the verdict
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    confidence: f64,

    /// Differences up to this size do not matter
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    margin: f64,

    /// The time that there is, for the smallest difference that it can show
    #[arg(long, value_name = "DAYS", default_value_t = 14.0)]
    days: f64,

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
    let request = PlanRequest {
        rankers: arguments.rankers,
        difference: arguments.difference,
        pages_per_day: arguments.pages_per_day,
        answered: arguments.answered,
        repeats: arguments.repeats,
        confidence: arguments.confidence,
        margin: arguments.margin,
        days: arguments.days,
    };
    let report = request.report(|| true).map_err(|error| match error {
        ServiceError::Invalid(errors) => {
            let details: Vec<_> = errors.into_iter().map(|error| error.detail).collect();
            CommandError::Usage(details.join("; ").replace("`pages_per_day`", "`pages-per-day`"))
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
    text += "\nthe best wins   days (median)   nine of ten\n";
    let longest = report.curve.iter().map(|of| of.days.median).fold(0.0, f64::max);
    for of in &report.curve {
        let high = of.days.high.map_or("?".to_owned(), |high| high.to_string());
        let bar = "#".repeat((BAR * of.days.median / longest).ceil() as usize);
        let wins = 100.0 * (0.5 + of.difference);
        let _ = writeln!(text, "{wins:11.1} %   {:13}   {high:>11}   {bar}", of.days.median);
    }
    text
}
