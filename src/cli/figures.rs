//! `rankduel figures`: the figures of the papers, made again.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use super::CommandError;
use super::output::Output;
use super::values::count;
use super::watched::Watched;
use lab::simulate::figures::{
    Content, FIGURES, Figure, Found, MatrixSource, Size, delay, spread, winners,
};
use lab::simulate::plot;
use lab::simulate::{Report, Tournament, report};

/// Make the figures of the papers again
///
/// Each figure becomes NAME.svg, NAME.csv and NAME.txt (the command that makes it again) in a
/// folder. Without --full they are of reduced size, some minutes in all; with --full they have the
/// papers' number of runs and steps, which takes hours to days.
///
/// Some matrices of the papers cannot be shipped: --data names a folder that holds them as CSV
/// files; without it a built-in matrix stands in, and the output says which.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only these figures (see --list)
    #[arg(value_name = "FIGURE")]
    names: Vec<String>,

    /// Name every figure, what it shows and the paper, and make none
    #[arg(long)]
    list: bool,

    /// The papers' size
    #[arg(long)]
    full: bool,

    /// Folder of the matrices: mslr_informational_5_condorcet.csv,
    /// mslr_informational_5_non_condorcet.csv, mslr_informational_136.csv, sushi_16.csv,
    /// syn_btl_100.csv, syn_hard_100.csv
    #[arg(long, value_name = "DIR")]
    data: Option<String>,

    /// Matrix for copeland-4 and copeland-table-1: a CSV file or a built-in name
    #[arg(long, value_name = "MATRIX")]
    matrix: Option<String>,

    /// Folder to write to
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,

    /// Steps of each run, instead of the figure's own
    #[arg(long, value_name = "STEPS", value_parser = |text: &str| count(text, 1, 1_000_000_000_000))]
    horizon: Option<u64>,

    /// Runs of each policy (subsets of each size), instead of the figure's own
    #[arg(long, value_name = "N", value_parser = |text: &str| count(text, 1, 100_000))]
    runs: Option<u64>,

    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Threads [default: one a core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// Run the command.
pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let figures = arguments.figures()?;
    if arguments.list {
        for figure in figures {
            say(&format!("{}\n  {}\n  {}\n", figure.name, figure.caption, figure.source))?;
        }
        return Ok(());
    }
    // everything that can be wrong is found before the first hour of work
    let plans = figures
        .iter()
        .map(|figure| arguments.plan(figure))
        .collect::<Result<Vec<_>, CommandError>>()?;
    let output = Output::create(&arguments.out)?;
    let watched = Watched::start(arguments.threads)?;
    for plan in &plans {
        say(&format!("{}: {}\n", plan.figure.name, plan.figure.caption))?;
        if let Some(absent) = plan.found.stands_in_for {
            say(&format!("  `{}` stands in for {absent}\n", plan.found.name))?;
        }
        let made = plan.make(arguments, &watched)?;
        if watched.is_interrupted() {
            return Err(anyhow!(
                "interrupted; the figures before {} are complete",
                plan.figure.name
            )
            .into());
        }
        let made = made.with_context(|| format!("{} has nothing to show", plan.figure.name))?;
        let name = plan.figure.name;
        output.write(&format!("{name}.csv"), &made.csv)?;
        if let Some(svg) = made.svg {
            output.write(&format!("{name}.svg"), &svg)?;
        }
        output.write(&format!("{name}.txt"), &arguments.command(plan))?;
        say(&format!("{}\n", made.summary))?;
    }
    Ok(())
}

fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("writing the result")
}

/// A figure with all that it needs.
struct Plan {
    figure: &'static Figure,
    found: Found,
    size: Size,
    tournaments: Vec<Tournament>,
}

/// A figure that was made.
struct Made {
    /// For standard output.
    summary: String,
    csv: String,
    svg: Option<String>,
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
                    "there is no figure `{name}`; choose among: {}",
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
        let (source, own_size) = match &figure.content {
            Content::Regret(f) | Content::Spread(f) | Content::Delay(_, f) => {
                (f.matrix, if self.full { f.full } else { f.reduced })
            }
            Content::CondorcetSubsets(source) | Content::WinnerOverlap(source) => {
                (*source, Size { horizon: 1, runs: if self.full { 10_000 } else { 200 } })
            }
        };
        let found = self.find(figure, &source).map_err(|error| wrong(&error))?;
        let size = Size {
            horizon: self.horizon.unwrap_or(own_size.horizon),
            runs: self.runs.unwrap_or(own_size.runs),
        };
        let tournaments = match &figure.content {
            Content::Regret(f) | Content::Spread(f) => f.tournaments(&found, size, self.seed),
            Content::Delay(late, f) => delay::tournaments(*late, f, &found, size, self.seed),
            Content::CondorcetSubsets(_) | Content::WinnerOverlap(_) => Ok(Vec::new()),
        }
        .map_err(|error| wrong(&error))?;
        Ok(Plan { figure, found, size, tournaments })
    }

    fn find(
        &self,
        figure: &Figure,
        source: &MatrixSource,
    ) -> Result<Found, dueling_bandits::preference::LoadError> {
        match (&self.matrix, figure.content) {
            (Some(name), Content::CondorcetSubsets(_) | Content::WinnerOverlap(_)) => Ok(Found {
                name: name.clone(),
                matrix: dueling_bandits::preference::PreferenceMatrix::load(name)?,
                stands_in_for: None,
            }),
            _ => source.find(self.data.as_deref(), self.full),
        }
    }

    /// The command that makes one figure again.
    fn command(&self, plan: &Plan) -> String {
        let mut words = vec!["rankduel".to_string(), "figures".into(), plan.figure.name.into()];
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
            "# rankduel {}\n# {}: {}\n# {}\n# matrix: {}\n{line}\n",
            env!("CARGO_PKG_VERSION"),
            plan.figure.name,
            plan.figure.caption,
            plan.figure.source,
            plan.found.name
        )
    }
}

impl Plan {
    /// `None` when it was interrupted too early.
    fn make(&self, arguments: &Arguments, watched: &Watched) -> anyhow::Result<Option<Made>> {
        let title = || format!("{} ({})", self.figure.caption, self.found.title());
        match &self.figure.content {
            Content::Regret(figure) => {
                let reports = self.reports(watched);
                let plot = figure.plot(self.figure, &self.found, &reports);
                Ok(plot.map(|plot| made(&reports, plot::svg(&plot))))
            }
            Content::Spread(_) => {
                let reports = self.reports(watched);
                let svg =
                    reports.first().map(|report| plot::bars_svg(&spread::bars(title(), report)));
                Ok(svg.map(|svg| made(&reports, svg)))
            }
            Content::Delay(late, figure) => {
                let reports = watched.run(&self.tournaments);
                let told: Vec<(u64, &Report)> = late
                    .values()
                    .iter()
                    .zip(&reports)
                    .filter_map(|(value, report)| Some((*value, report.as_ref()?)))
                    .collect();
                let plot = delay::plot(*late, title(), figure, &told);
                let reports: Vec<Report> = reports.iter().flatten().cloned().collect();
                Ok(plot.map(|plot| made(&reports, plot::svg(&plot))))
            }
            Content::CondorcetSubsets(_) | Content::WinnerOverlap(_) => {
                let overlaps = matches!(self.figure.content, Content::WinnerOverlap(_));
                let matrix = &self.found.matrix;
                let sizes = winners::sizes(matrix.rankers(), arguments.full);
                let subsets = self.size.runs;
                let counts = watched.work(subsets * sizes.len() as u64, |watch| {
                    winners::count(matrix, &sizes, subsets, overlaps, arguments.seed, watch)
                })?;
                let csv = if overlaps {
                    winners::overlap_csv(&counts)
                } else {
                    winners::subsets_csv(&counts)
                };
                let svg = (!overlaps).then(|| plot::svg(&winners::plot(title(), &counts)));
                Ok(Some(Made { summary: csv.clone(), csv, svg }))
            }
        }
    }

    fn reports(&self, watched: &Watched) -> Vec<Report> {
        watched.run(&self.tournaments).into_iter().flatten().collect()
    }
}

fn made(reports: &[Report], svg: String) -> Made {
    let summary = reports.iter().map(report::table).collect::<Vec<_>>().join("\n");
    Made { summary, csv: report::csv(reports), svg: Some(svg) }
}
