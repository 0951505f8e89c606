//! `lab figures`: reproduces the figures of the papers.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use super::CommandError;
use super::output::{Output, print};
use super::workers::Workers;
use lab::simulate::figures::{
    Content, FIGURES, Figure, FoundMatrix, MatrixSource, Size, delay, gaps, subsets, winners,
};
use lab::simulate::{Report, Tournament, curves_csv, report};
use lab::values::count;

/// Reproduce the figures of the papers
///
/// Writes NAME.csv and NAME.txt (the command that reproduces it) for each figure to a folder;
/// crates/lab/plot.py draws them. Without --full, the figures have a reduced size and take some
/// minutes together. With --full, they have the number of runs and steps of the papers, which takes
/// hours to days.
///
/// Some matrices of the papers cannot be distributed. --data names a folder with these matrices as
/// CSV files. Without it, a built-in matrix replaces each of them, and the output names it.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only these figures; see --list
    #[arg(value_name = "FIGURE")]
    names: Vec<String>,

    /// List every figure with its caption and paper, without making any
    #[arg(long)]
    list: bool,

    /// Use the size of the papers
    #[arg(long)]
    full: bool,

    /// Folder with the matrices: mslr_informational_5_condorcet.csv,
    /// mslr_informational_5_non_condorcet.csv, mslr_informational_136.csv, sushi_16.csv,
    /// syn_btl_100.csv
    #[arg(long, value_name = "DIR")]
    data: Option<String>,

    /// Matrix for copeland-4, -6 and copeland-table-1: a CSV file or a built-in name
    #[arg(long, value_name = "MATRIX")]
    matrix: Option<String>,

    /// Folder to write to
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,

    /// Number of steps of each run, instead of the number of the figure
    #[arg(long, value_name = "STEPS", value_parser = |text: &str| count(text, 1, 1_000_000_000_000))]
    horizon: Option<u64>,

    /// Number of runs of each policy (or subsets of each size), instead of the number of the figure
    #[arg(long, value_name = "N", value_parser = |text: &str| count(text, 1, 100_000))]
    runs: Option<u64>,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let figures = arguments.figures()?;
    if arguments.list {
        for figure in figures {
            print(&format!("{}\n  {}\n  {}\n", figure.name, figure.caption, figure.source))?;
        }
        return Ok(());
    }
    // Validate everything before hours of work.
    let plans = figures
        .iter()
        .map(|figure| arguments.plan(figure))
        .collect::<Result<Vec<_>, CommandError>>()?;
    let output = Output::create(&arguments.out)?;
    let workers = Workers::start(arguments.threads)?;
    for plan in &plans {
        print(&format!("{}: {}\n", plan.figure.name, plan.figure.caption))?;
        if let Some(absent) = &plan.found.stands_in_for {
            print(&format!("  `{}` stands in for {absent}\n", plan.found.name))?;
        }
        let made = plan.make(arguments, &workers)?;
        if workers.is_interrupted() {
            return Err(anyhow!(
                "interrupted; the figures before {} are complete",
                plan.figure.name
            )
            .into());
        }
        let made = made.with_context(|| format!("{} has no data", plan.figure.name))?;
        let name = plan.figure.name;
        output.write(&format!("{name}.csv"), &made.csv)?;
        output.write(&format!("{name}.txt"), &arguments.command(plan))?;
        print(&format!("{}\n", made.summary))?;
    }
    Ok(())
}

/// A figure with its inputs.
struct Plan {
    figure: &'static Figure,
    found: FoundMatrix,
    size: Size,
    tournaments: Vec<Tournament>,
}

struct Made {
    /// For standard output.
    summary: String,
    csv: String,
}

impl Arguments {
    fn figures(&self) -> Result<Vec<&'static Figure>, CommandError> {
        if self.names.is_empty() {
            return Ok(FIGURES.iter().collect());
        }
        let known = || FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        let find = |name: &String| {
            FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| {
                CommandError::Usage(format!(
                    "there is no figure `{name}`; choose one of: {}",
                    known()
                ))
            })
        };
        self.names.iter().map(find).collect()
    }

    fn plan(&self, figure: &'static Figure) -> Result<Plan, CommandError> {
        let wrong = |error: &dyn std::fmt::Display| {
            CommandError::Usage(format!("{}: {error}", figure.name))
        };
        let find = |source: &MatrixSource| source.find(self.data.as_deref(), self.full);
        let (found, own_size) = match (figure.content.inputs(), &self.matrix) {
            (Ok(f), _) => (find(&f.matrix), if self.full { f.full } else { f.reduced }),
            (Err(source), named) => (
                named.as_deref().map_or_else(|| find(source), FoundMatrix::load),
                Size { horizon: 1, runs: if self.full { 10_000 } else { 200 } },
            ),
        };
        let found = found.map_err(|error| wrong(&error))?;
        let size = Size {
            horizon: self.horizon.unwrap_or(own_size.horizon),
            runs: self.runs.unwrap_or(own_size.runs),
        };
        let tournaments = match (&figure.content, figure.content.inputs()) {
            (Content::Delay(late, f), _) => delay::tournaments(*late, f, &found, size, self.seed),
            (_, Ok(f)) => f.tournaments(&found, size, self.seed),
            (_, Err(_)) => Ok(Vec::new()),
        };
        let tournaments = tournaments.map_err(|error| wrong(&error))?;
        Ok(Plan { figure, found, size, tournaments })
    }

    /// The command that reproduces one figure.
    fn command(&self, plan: &Plan) -> String {
        let mut words = vec!["lab".to_string(), "figures".into(), plan.figure.name.into()];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(
                value.map(|value| format!("{name}={}", super::output::shell_quoted(&value))),
            );
        };
        option("--data", self.data.clone());
        option("--matrix", self.matrix.clone());
        option("--horizon", self.horizon.map(|horizon| horizon.to_string()));
        option("--runs", self.runs.map(|runs| runs.to_string()));
        option("--seed", Some(self.seed.to_string()));
        option("--out", Some(self.out.display().to_string()));
        if self.full {
            words.push("--full".into());
        }
        let line = words.join(" ");
        format!(
            "# lab {}\n# {}: {}\n# {}\n# matrix: {}\n{line}\n",
            env!("CARGO_PKG_VERSION"),
            plan.figure.name,
            plan.figure.caption,
            plan.figure.source,
            plan.found.name
        )
    }
}

impl Plan {
    /// Makes the figure; `None` if it was interrupted too early.
    fn make(&self, arguments: &Arguments, workers: &Workers) -> anyhow::Result<Option<Made>> {
        let matrix = &self.found.matrix;
        let sizes = subsets::sizes(matrix.rankers(), arguments.full);
        let (subsets, seed) = (self.size.runs, arguments.seed);
        let of_subsets = subsets * sizes.len() as u64;
        match &self.figure.content {
            Content::Regret(_) => {
                let reports = self.reports(workers);
                Ok(made(&reports, curves_csv::write(&reports)))
            }
            Content::Spread(_) | Content::Delay(..) => {
                let reports = self.reports(workers);
                let ends: Vec<Report> = reports.iter().cloned().map(Report::at_horizon).collect();
                Ok(made(&reports, curves_csv::write(&ends)))
            }
            Content::GapAdvantage(_) => {
                let found = workers.work(of_subsets, |progress| {
                    gaps::measure(matrix, &sizes, subsets, seed, progress)
                });
                let csv = gaps::csv(&found);
                Ok(Some(Made { summary: csv.clone(), csv }))
            }
            Content::CondorcetSubsets(_) | Content::WinnerOverlap(_) => {
                let overlaps = matches!(self.figure.content, Content::WinnerOverlap(_));
                let counts = workers.work(of_subsets, |progress| {
                    winners::count(matrix, &sizes, subsets, overlaps, seed, progress)
                })?;
                let csv = match overlaps {
                    true => winners::overlap_csv(&counts),
                    false => winners::subsets_csv(&counts),
                };
                Ok(Some(Made { summary: csv.clone(), csv }))
            }
        }
    }

    fn reports(&self, workers: &Workers) -> Vec<Report> {
        workers.run(&self.tournaments).into_iter().flatten().collect()
    }
}

/// A figure of these reports; `None` without any.
fn made(reports: &[Report], csv: String) -> Option<Made> {
    let summary = reports.iter().map(report::table).collect::<Vec<_>>().join("\n");
    (!reports.is_empty()).then_some(Made { summary, csv })
}
