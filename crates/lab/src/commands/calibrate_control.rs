//! The options of `lab calibrate` for a control, and their report.

use std::fmt::Write as _;

use clap::Args;

use super::CommandError;
use super::calibrate::served;
use super::values::{choice, count};
use dueling_bandits::claims::control::Goal;
use lab::simulate::calibration::Trial;
use lab::simulate::control::{ControlCalibration, ControlTrial};

#[derive(Debug, Args)]
pub(super) struct ControlArguments {
    /// Index of the control in each matrix, from 0
    #[arg(long, value_name = "I", conflicts_with_all = ["drift", "answer_window", "units"])]
    pub(super) control: Option<usize>,

    /// The claim that each experiment proves first: which ranker is best, or that a ranker is
    /// better than the control
    #[arg(long, value_parser = choice::<Goal>(&["best", "improve"]), default_value = "best", requires = "control")]
    goal: Goal,

    /// An attack: each page shows the control and the ranker with the most evidence of being better
    #[arg(long, requires = "control")]
    follow_luck: bool,

    /// An attack: every so many pages, the ranker with the worst rate becomes the control
    #[arg(long, value_name = "PAGES", requires = "control", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    switch_every: Option<u64>,
}

impl ControlArguments {
    /// The trials with the control.
    pub fn trials(&self, trials: Vec<Trial>) -> Result<Vec<ControlTrial>, CommandError> {
        let control = self.control.unwrap_or_default();
        let of_trial = |trial: Trial| {
            let spec = served(&trial, "a control is")?;
            let rankers = trial.matrix.rankers();
            if control >= rankers {
                let name = &trial.name;
                return Err(CommandError::Usage(format!(
                    "--control {control}: `{name}` has {rankers} rankers, 0 to {}",
                    rankers - 1
                )));
            }
            let goal = self.goal;
            let (follow_luck, switch_every) = (self.follow_luck, self.switch_every);
            Ok(ControlTrial { trial, spec, control, goal, follow_luck, switch_every })
        };
        trials.into_iter().map(of_trial).collect()
    }
}

/// The report as a table.
pub(super) fn control_table(found: &[ControlCalibration]) -> String {
    let mut text = String::from(
        "| matrix | policy | control | goal | experiments | best | better | both | wrong verdicts | \
         bound too high | at most | too low | at most |\n\
         | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for found in found {
        let known = |pages: Option<u64>| pages.map_or_else(|| "–".into(), |it| it.to_string());
        let [high, low] = found.wrong_claims;
        let [high_most, low_most] = found.wrong_share_at_most;
        let goal = match found.goal {
            Goal::Best => "best",
            Goal::Improve => "improve",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {goal} | {} of {} pages | {} | {} | {} | {} | {high} | {:.2} % | {low} | {:.2} % |",
            found.matrix,
            found.policy,
            found.control,
            found.runs,
            found.horizon,
            known(found.median_best),
            known(found.median_better),
            known(found.median_both),
            found.wrong_verdicts,
            100.0 * high_most,
            100.0 * low_most,
        );
    }
    text
}
