//! `lab estimate`: estimates a preference matrix from judged documents and simulated users.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};

use super::CommandError;
use super::letor::{grades, rankers, read};
use super::output::{print, print_json, this_command};
use super::workers::Workers;
use interleaving::click_models::ClickModelSpec;
use interleaving::methods::probabilistic::{PosteriorCredit, Probabilistic};
use interleaving::{Method, PlanCache, Spec};
use lab::estimate::report::{DataSummary, Entry, Report, Settings};
use lab::estimate::{Pages, compare_all};
use lab::values::count;

/// Bytes of the linear programs whose solutions are cached.
const PLANS_BYTES: usize = 64 << 20;

/// Estimate a preference matrix from a learning-to-rank data set
///
/// The rankers are the features of the file: each one orders the documents of a query by its value,
/// highest first. Every pair is compared many times. A comparison draws a query, puts equal values
/// in random order, interleaves the two rankings, simulates clicks on the page, and credits the
/// clicks, with the same code that serves pages. The same seed gives the same numbers on any number
/// of threads. The numbers of a pair do not depend on the other features.
///
/// Only the result goes to standard output. Ctrl-C stops the command without a result.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// A LETOR file (SVMlight with qid) with lines `grade qid:ID 1:value 2:value … # comment`
    #[arg(long, value_name = "FILE")]
    letor: PathBuf,

    /// Click model: perfect, navigational, informational, almost-random, random (each with
    /// stop_on=click or examine), or position-based (eta, attraction)
    #[arg(long, value_name = "USERS", default_value = "navigational")]
    clicks: String,

    /// Number of grades: 2, 3 or 5 [default: the smallest number that fits the file]
    #[arg(long, value_name = "N")]
    grades: Option<usize>,

    /// Only these features, in this order [default: all]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    features: Vec<u32>,

    /// Number of slots of a page
    #[arg(long, value_name = "N", default_value = "10", value_parser = |text: &str| count(text, 1, 1000))]
    length: u64,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Interleaving method: KIND or KIND:name=value,name=value
    ///
    /// team-draft (shared=collapse, credit-all, ignore-prefix, ignore-same-rank, ignore-round),
    /// balanced, probabilistic (tau, credit=more-clicks or expected-clicks, verdict=sign or drawn),
    /// optimized (credit=inverse, linear or binary; depth; max_lists).
    #[arg(long, value_name = "METHOD", default_value = "team-draft")]
    method: String,

    /// Number of comparisons of each pair; the form 2e4 is accepted
    #[arg(long, value_name = "N", default_value = "10000", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    comparisons: u64,

    /// How an entry of the matrix is computed
    #[arg(long, value_enum, default_value_t = Entry::Half)]
    ties: Entry,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Also write the matrix to a file for `simulate --preferences`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  Compare all features, and find out whether one of them beats all others:
    lab estimate --letor MQ2008-S4.txt --comparisons 2e4 --out mq2008.csv

  Measure the regret of policies on these rankers:
    lab simulate --preferences mq2008.csv --policy d-ts-plus --policy uniform

  Compare five features with probabilistic interleaving and users who read many documents:
    lab estimate --letor MQ2008-S4.txt --features 39,23,38,37,21 \\
        --method probabilistic --clicks informational";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text to read
    Table,
    /// JSON object with every pair
    Json,
    /// The matrix as CSV
    Csv,
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let Arguments { letor, clicks, seed, .. } = arguments;
    let wrong_method =
        |error| CommandError::Usage(format!("--method {}: {error}", arguments.method));
    let method = Spec::from_text(&arguments.method).map_err(wrong_method)?;
    let scores_are_probabilities = matches!(
        method.method,
        Method::Probabilistic(Probabilistic { credit: PosteriorCredit::MoreClicks, .. })
    );
    if arguments.ties == Entry::Score && !scores_are_probabilities {
        return Err(CommandError::Usage(
            "--ties score needs scores from -1 to 1: --method probabilistic with credit=more-clicks".into(),
        ));
    }
    let wrong_clicks = |error| CommandError::Usage(format!("--clicks {clicks}: {error}"));
    let users = ClickModelSpec::from_text(clicks).map_err(wrong_clicks)?;
    let (data, sha256) = read(letor)?;
    let grades = grades(letor, &data, arguments.grades)?;
    let rankers = rankers(&data, &arguments.features)?;
    let pages = Pages {
        data: &data,
        method,
        click_model: users.for_grades(grades).map_err(wrong_clicks)?,
        length: usize::try_from(arguments.length).unwrap_or(usize::MAX),
        plans: &PlanCache::new(PLANS_BYTES),
        seed: *seed,
    };
    // Create the file before the work, so that a wrong path does not lose the result.
    let out = arguments
        .out
        .as_ref()
        .map(|path| {
            File::create(path).with_context(|| format!("cannot write `{}`", path.display()))
        })
        .transpose()?;

    let pairs = (rankers.len() * (rankers.len() - 1) / 2) as u64;
    let workers = Workers::start(arguments.threads)?;
    let counts = workers
        .work(pairs.saturating_mul(arguments.comparisons), |progress| {
            compare_all(&pages, &rankers, arguments.comparisons, progress)
        })
        .ok_or_else(|| anyhow!("interrupted; there is no partial result"))?;

    let settings = Settings {
        file: letor.display().to_string(),
        sha256,
        method: arguments.method.clone(),
        click_model: users.text(),
        length: pages.length,
        comparisons: arguments.comparisons,
        seed: *seed,
        entry: arguments.ties,
    };
    let summary = DataSummary {
        queries: data.queries.len(),
        documents: data.documents,
        grades,
        constant_features: data.constant.clone(),
    };
    let features: Vec<u32> = rankers.iter().map(|&ranker| data.features[ranker]).collect();
    let ndcg: Vec<f64> =
        rankers.iter().map(|&ranker| data.mean_ndcg(ranker, pages.length)).collect();
    let report = Report::new(settings, summary, &features, &ndcg, &counts)
        .context("the comparisons do not give a valid matrix")?;

    if let (Some(mut file), Some(path)) = (out, &arguments.out) {
        file.write_all((this_command_as_comment() + &report.csv()).as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    match arguments.format {
        Format::Table => print(&report.table())?,
        Format::Json => print_json(&report)?,
        Format::Csv => print(&report.csv())?,
    }
    Ok(())
}

fn this_command_as_comment() -> String {
    this_command().lines().map(|line| format!("# {}\n", line.trim_start_matches("# "))).collect()
}
