//! The options of `lab calibrate` for claims beside the verdict, and their report.

use std::fmt::Write as _;

use clap::Args;

use super::CommandError;
use super::output::percent;
use dueling_bandits::PolicySpec;
use dueling_bandits::claims::control::Goal;
use dueling_bandits::claims::segments::SEGMENTS_MAX;
use lab::simulate::calibration::Trial;
use lab::simulate::claims::{ClaimsCalibration, ClaimsTrial, Failures, Segments};
use lab::values::{between, choice, count, probability, two};

/// Options that need a page after the other, without time.
const TIMED: [&str; 7] =
    ["units", "unnamed", "machine", "delay_first", "delay_second", "loss_first", "answer_window"];

#[derive(Debug, Args)]
pub(super) struct ClaimsArguments {
    /// Index of the control in each matrix, from 0
    #[arg(long, value_name = "I", conflicts_with = "drift")]
    control: Option<usize>,

    /// The claim that each experiment proves first: which ranker is best, or that a ranker is
    /// better than the control
    #[arg(long, value_parser = choice::<Goal>(&["best", "improve"]), default_value = "best", requires = "control")]
    goal: Goal,

    /// An attack: each page shows the control and the ranker with the most evidence of being better
    #[arg(long, requires = "control", conflicts_with_all = TIMED)]
    follow_luck: bool,

    /// An attack: every so many pages, the ranker with the worst rate becomes the control
    #[arg(long, value_name = "PAGES", requires = "control", conflicts_with_all = TIMED, value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    switch_every: Option<u64>,

    /// So many segments of equal size; in the first one the control wins this share of its duels,
    /// such as 4,0.6
    #[arg(long, value_name = "N,SHARE", requires = "control", conflicts_with_all = TIMED, conflicts_with = "switch_every", value_parser = segments)]
    segments: Option<Segments>,

    /// A metric of failing pages: its limit, and the share of failing pages of each ranker, such as
    /// 0.05,0.1. The control has half of the limit
    #[arg(long, value_name = "LIMIT,SHARE", requires = "control", conflicts_with_all = TIMED, conflicts_with = "switch_every", value_parser = failures)]
    failures: Option<Failures>,
}

fn segments(text: &str) -> Result<Segments, String> {
    let number = |text: &str| count(text, 1, SEGMENTS_MAX as u64).map(|number| number as usize);
    let (count, control_wins) = two(text, number, probability)?;
    Ok(Segments { count, control_wins })
}

fn failures(text: &str) -> Result<Failures, String> {
    let (limit, share) = two(text, |limit| between(limit, 1e-6, 0.999), probability)?;
    Ok(Failures { limit, share })
}

impl ClaimsArguments {
    /// The control of this trial, and the claim that is proven first.
    pub fn control(&self, trial: &Trial) -> Result<Option<(usize, Goal)>, CommandError> {
        let rankers = trial.matrix.rankers();
        match self.control {
            Some(control) if control >= rankers => Err(CommandError::Usage(format!(
                "--control {control}: `{}` has {rankers} rankers, 0 to {}",
                trial.name,
                rankers - 1
            ))),
            control => Ok(control.map(|control| (control, self.goal))),
        }
    }

    /// Whether there is a control.
    pub fn any(&self) -> bool {
        self.control.is_some()
    }

    /// The trial with the control.
    pub fn trial(&self, trial: Trial, spec: PolicySpec) -> Result<ClaimsTrial, CommandError> {
        let (control, goal) = self.control(&trial)?.unwrap_or_default();
        let &Self { follow_luck, switch_every, segments, failures, .. } = self;
        Ok(ClaimsTrial {
            trial,
            spec,
            control,
            goal,
            follow_luck,
            switch_every,
            segments,
            failures,
        })
    }
}

pub(super) fn claims_table(found: &[ClaimsCalibration]) -> String {
    let mut text = String::from(
        "| matrix | policy | claim | made | median pages | wrong | wrong at most | left out |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for found in found {
        for claim in &found.claims {
            let name = serde_json::to_value(claim.claim).unwrap_or_default();
            let median = claim.median_pages.map_or_else(|| "–".into(), |it| it.to_string());
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} of {}, {} pages | {median} | {} | {:.2} % | {} |",
                found.matrix,
                found.policy,
                name.as_str().unwrap_or_default(),
                claim.made,
                found.runs,
                found.horizon,
                claim.wrong,
                100.0 * claim.wrong_share_at_most,
                percent(found.left_out),
            );
        }
    }
    text
}
