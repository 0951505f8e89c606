//! The options of `lab calibrate` for the conditions of production.

use clap::Args;

use super::values::{between, probability, two};
use lab::simulate::production::Production;

/// In each pair, *first* is the ranker with the lower index in the matrix.
#[derive(Debug, Args)]
pub(super) struct ProductionArguments {
    /// Pages a second
    #[arg(long, value_name = "PAGES", default_value = "20", value_parser = |text: &str| between(text, 1e-3, 1e6))]
    rate: f64,

    /// Units come back: mean pages of a unit, and the standard deviation over units of the
    /// probability that the first ranker wins, such as 10,0.1. Activity is Pareto with exponent 1.5
    #[arg(long, value_name = "PAGES,SD", value_parser = units)]
    units: Option<(f64, f64)>,

    /// The caller does not send `unit`
    #[arg(long)]
    unnamed: bool,

    /// One machine asks for this share of all pages, and always lets the first ranker win
    #[arg(long, value_name = "SHARE", value_parser = probability)]
    machine: Option<f64>,

    /// Mean delay of answers that the first ranker wins, in seconds; delays are exponential
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay_first: Option<f64>,

    /// Mean delay of answers that the second ranker wins, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay_second: Option<f64>,

    /// Share of the first ranker's wins that never come back
    #[arg(long, value_name = "SHARE", value_parser = probability)]
    loss_first: Option<f64>,

    /// The experiment's `answer_window_seconds`; with 0, answers count as they arrive [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    answer_window: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    between(text, 0.0, 2_592_000.0)
}

fn units(text: &str) -> Result<(f64, f64), String> {
    two(text, |pages| between(pages, 1.0, 1e4), |spread| between(spread, 0.0, 0.5))
}

impl ProductionArguments {
    /// The conditions; `None` if none of these options was given.
    pub fn conditions(&self) -> Option<Production> {
        let numbers = [
            self.machine,
            self.delay_first,
            self.delay_second,
            self.loss_first,
            self.answer_window,
        ];
        let is_given = self.units.is_some() || numbers.iter().any(Option::is_some);
        is_given.then(|| Production {
            rate: self.rate,
            units: self.units,
            names_units: !self.unnamed,
            machine: self.machine.unwrap_or(0.0),
            delays: (self.delay_first.unwrap_or(0.0), self.delay_second.unwrap_or(0.0)),
            lost_first: self.loss_first.unwrap_or(0.0),
            window: self.answer_window.unwrap_or(0.0),
        })
    }
}
