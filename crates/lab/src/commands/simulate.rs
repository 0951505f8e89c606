//! `lab simulate`: measures the regret of policies on known preference matrices.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde_json::Value;

use super::CommandError;
use super::output::{Format, Output, this_command};
use super::workers::Workers;
use comparators::Spec;
use dueling_bandits::TieRule;
use dueling_bandits::preference::{PreferenceMatrix, RegretKind};
use lab::simulate::{Delay, Entrant, Feedback, Report, Tournament, curves_csv, report};
use lab::values::{choice, count, delay, probability};

/// Measure the regret of policies on known preference matrices
///
/// Runs each policy on each matrix, many times, with the same code as the service. Reports the true
/// cumulative regret at logarithmically spaced steps: mean, standard error, standard deviation. A
/// step is one shown duel; a self-duel (a ranker shown alone) is a step too. The same seed gives
/// the same numbers on any number of threads.
///
/// Only the result goes to standard output. Ctrl-C stops early and reports the runs that every
/// policy has finished, or, before the first finished run, the steps that every policy has reached.
/// `runs` and `horizon` in the report are the numbers actually done.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// A policy: KIND or KIND:name=value,name=value; can be repeated
    ///
    /// `rankduel policies` lists kinds and parameters. If a policy has the parameter `horizon`, its
    /// default here is the horizon of the simulation.
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    policies: Vec<String>,

    /// A preference matrix: a CSV file or a built-in name; can be repeated
    ///
    /// A CSV file has K rows of K numbers: row i, column j is the probability that ranker i beats
    /// ranker j. Opposite entries add up to 1 (within 1e-9), and the diagonal is 0.5. There are 2
    /// to 1024 rankers. A header with names, names before the rows, blank lines and lines that
    /// start with # are ignored.
    ///
    /// Built in: arxiv-6, cyclic-4, arithmetic-8 (published); btl:K:SEED (Bradley-Terry-Luce),
    /// hard:K:SEED[:GAP] (one ranker beats all others by GAP, default 0.2; all others are
    /// tied), cycle:K:SEED (three Copeland winners in a cycle, no Condorcet winner), sst:K:SEED
    /// (strong stochastic transitivity).
    #[arg(long, value_name = "MATRIX", required = true)]
    preferences: Vec<String>,

    /// Number of steps of each run; the form 1e5 is accepted
    #[arg(long, value_name = "STEPS", default_value = "100000", value_parser = |text: &str| count(text, 1, 1_000_000_000_000))]
    horizon: u64,

    /// Number of runs of each policy on each matrix
    #[arg(long, value_name = "N", default_value = "20", value_parser = |text: &str| count(text, 1, 100_000))]
    runs: u64,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// The kind of regret; see below
    #[arg(long, value_parser = choice::<RegretKind>(&["copeland", "condorcet", "borda", "weak"]), default_value = "copeland")]
    regret: RegretKind,

    /// Default of the parameter `alpha` for every policy that has it
    ///
    /// For most policies, it is the width of the confidence bounds. `rankduel policies` describes
    /// the exceptions.
    #[arg(long, value_name = "ALPHA")]
    alpha: Option<f64>,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    #[command(flatten)]
    feedback: FeedbackArguments,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Also write the curves and every run (CSV) and this command to a folder. crates/lab/plot.py
    /// draws the curves
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// How feedback reaches the policy.
#[derive(Debug, Args)]
#[command(next_help_heading = "Searchers and feedback")]
struct FeedbackArguments {
    /// Probability that a page with clicks is a tie
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability)]
    ties: f64,

    /// How a tie counts: not at all, as half a win for both, or as a win for a random side
    #[arg(long, value_parser = choice::<TieRule>(&["skip", "half", "coin"]), default_value = "skip")]
    tie_rule: TieRule,

    /// Probability that a page gets no click. Such a page does not count and is not a tie
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability)]
    no_click: f64,

    /// Probability that an outcome is lost; self-duels do not need one
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability)]
    loss: f64,

    /// Number of further duels that are selected before an outcome is known: N or geometric:MEAN
    #[arg(long, value_name = "STEPS", default_value = "0", value_parser = delay)]
    delay: Delay,

    /// Number of outstanding duels. Each step answers one of them, drawn at random
    #[arg(long, value_name = "N", conflicts_with = "delay", value_parser = |text: &str| count(text, 1, 1_000_000))]
    in_flight: Option<u64>,

    /// Deliver outcomes together after every N steps
    #[arg(long, value_name = "N", default_value = "1", value_parser = |text: &str| count(text, 1, 1_000_000))]
    feedback_batch: u64,

    /// Number of servers that share the log. In each step, a random server issues the duel and a
    /// random server receives an outcome. Each server knows only its own duels in flight
    #[arg(long, value_name = "N", default_value = "1", value_parser = |text: &str| count(text, 1, 1000))]
    replicas: u64,

    /// Number of steps until a server folds the entries of other servers
    #[arg(long, value_name = "STEPS", default_value = "0", requires = "replicas", value_parser = |text: &str| count(text, 0, 1_000_000))]
    lag: u64,
}

const EXAMPLES: &str = "\
Examples:
  Compare Double Thompson Sampling with uniform pairs on six rankers:
    lab simulate --preferences arxiv-6 --policy uniform --policy d-ts

  Compare two settings of one policy on your own matrix, as JSON with a fixed seed:
    lab simulate --preferences mine.csv --policy d-ts:alpha=0.51 --policy d-ts:alpha=1 \\
        --horizon 1e6 --runs 100 --seed 7 --format json

  Measure the effect of late feedback, with 1000 duels outstanding and one outcome in five lost:
    lab simulate --preferences btl:50:1 --policy d-ts --in-flight 1000 --loss 0.2

  The same with eight servers, each 100 duels behind the others:
    lab simulate --preferences btl:50:1 --policy d-ts --in-flight 1000 --replicas 8 --lag 100

Regret of a step that shows rankers i and j:
  copeland    c* - (c_i + c_j)/2, where c is the share of other rankers that a ranker beats, and
              c* the largest c
  condorcet   (e_i + e_j)/2, where e_i = P(w beats i) - 1/2 and w is the ranker that beats all
              others (it must exist)
  borda       b* - (b_i + b_j)/2, where b is the mean win rate of a ranker, and b* the largest b
  weak        the smaller of e_i and e_j";

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let tournaments = arguments.tournaments()?;
    let output = arguments.out.as_deref().map(Output::create).transpose()?;
    let workers = Workers::start(arguments.threads)?;
    let reports = workers.run(&tournaments);
    for (tournament, report) in tournaments.iter().zip(&reports) {
        if let (true, Some(report)) = (workers.is_interrupted(), report) {
            eprintln!(
                "lab: interrupted: `{}` has {} of {} runs of {} of {} steps",
                tournament.name, report.runs, tournament.runs, report.horizon, tournament.horizon
            );
        }
    }
    let reports: Vec<Report> = reports.into_iter().flatten().collect();
    if reports.is_empty() {
        return Err(anyhow!(
            "interrupted before every policy had done a step; there is nothing to report"
        )
        .into());
    }
    if let Some(output) = output {
        write_out(&output, &reports)?;
    }
    let table = || reports.iter().map(report::table).collect::<Vec<_>>().join("\n");
    match &reports[..] {
        [report] => arguments.format.print(report, table)?,
        several => arguments.format.print(&several, table)?,
    }
    Ok(())
}

/// Writes `curves.csv`, `runs.csv` and `command.txt`.
fn write_out(output: &Output, reports: &[Report]) -> anyhow::Result<()> {
    output.write("curves.csv", &curves_csv::write(reports))?;
    output.write("runs.csv", &curves_csv::write_runs(reports))?;
    output.write("command.txt", &this_command())
}

impl Arguments {
    /// Validates the whole call before the first step.
    fn tournaments(&self) -> Result<Vec<Tournament>, CommandError> {
        let entrants = self
            .policies
            .iter()
            .map(|text| self.entrant(text))
            .collect::<Result<Vec<_>, CommandError>>()?;
        self.preferences.iter().map(|name| self.tournament(name, &entrants)).collect()
    }

    fn entrant(&self, text: &str) -> Result<Entrant, CommandError> {
        let mut fallbacks = vec![("horizon", Value::from(self.horizon))];
        fallbacks.extend(self.alpha.map(|alpha| ("alpha", Value::from(alpha))));
        let spec = Spec::from_text_with(text, &fallbacks)
            .map_err(|error| CommandError::Usage(format!("--policy {text}: {error}")))?;
        Ok(Entrant { text: text.into(), spec })
    }

    fn tournament(&self, name: &str, entrants: &[Entrant]) -> Result<Tournament, CommandError> {
        let wrong = |error: &dyn std::fmt::Display| {
            CommandError::Usage(format!("--preferences {name}: {error}"))
        };
        let matrix = PreferenceMatrix::load(name).map_err(|error| wrong(&error))?;
        for entrant in entrants {
            entrant.spec.validate(matrix.rankers()).map_err(|error| {
                CommandError::Usage(format!(
                    "--policy {} on `{name}` ({} rankers): {error}",
                    entrant.text,
                    matrix.rankers()
                ))
            })?;
        }
        let tournament =
            Tournament::new(name, matrix, self.regret, entrants.to_vec(), self.horizon)
                .map_err(|error| wrong(&format!("{error} (--regret copeland)")))?;
        Ok(Tournament {
            runs: self.runs,
            seed: self.seed,
            feedback: self.feedback.feedback(),
            ..tournament
        })
    }
}

impl FeedbackArguments {
    fn feedback(&self) -> Feedback {
        Feedback {
            no_click: self.no_click,
            ties: self.ties,
            tie_rule: self.tie_rule,
            loss: self.loss,
            delay: match self.in_flight {
                Some(most) => Delay::Outstanding(usize::try_from(most).unwrap_or(usize::MAX)),
                None => self.delay,
            },
            batch_steps: self.feedback_batch,
            replicas: self.replicas as usize,
            lag: self.lag,
        }
    }
}
