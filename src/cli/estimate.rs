//! `rankduel estimate`: a preference matrix from judged documents and simulated users.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};

use super::output::this_command;
use super::values::count;
use super::watched::Watched;
use super::{CommandError, letor};
use interleaving::click_models::ClickModelSpec;
use interleaving::methods::probabilistic::{PosteriorCredit, Probabilistic};
use interleaving::{Method, PlanCache, Spec};
use lab::estimate::report::{DataSummary, Entry, Report, Settings};
use lab::estimate::{Comparing, compare_all};

/// Linear programs that are kept: all that a data set of some thousand queries asks for again.
const PLANS: usize = 100_000;

/// Estimate who beats whom from a learning-to-rank data set
///
/// The rankers are the features of the file: each orders a query's documents by its value, highest
/// first. Every pair is compared many times: a query is drawn, equal values are put in random
/// order, the two rankings are interleaved, simulated users click on the page, and the clicks are
/// credited, by the same code that serves pages. The same seed gives the same numbers on any number
/// of threads, and a pair's numbers do not depend on which other features are compared.
///
/// Only the result goes to standard output. Ctrl-C gives up: half a matrix is none.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// A LETOR file (SVMlight with qid): lines `grade qid:ID 1:value 2:value … # comment`
    #[arg(long, value_name = "FILE")]
    letor: PathBuf,

    /// How two rankings become a page: KIND or KIND:name=value,name=value
    ///
    /// team-draft (shared=collapse, credit-all, ignore-prefix, ignore-same-rank, ignore-round),
    /// balanced, probabilistic (tau, credit=more-clicks or expected-clicks, verdict=sign or drawn),
    /// optimized (credit=inverse, linear or binary; depth; max_lists).
    #[arg(long, value_name = "METHOD", default_value = "team-draft")]
    method: String,

    /// Who clicks: perfect, navigational, informational, almost-random, random (each with
    /// stop_on=click or examine), or position-based (eta, attraction)
    #[arg(long, value_name = "USERS", default_value = "navigational")]
    clicks: String,

    /// Grades of the documents: 2, 3 or 5 [default: as few as the file needs]
    #[arg(long, value_name = "N")]
    grades: Option<usize>,

    /// Comparisons of each pair; 2e4 is understood
    #[arg(long, value_name = "N", default_value = "10000", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    comparisons: u64,

    /// Only these features, in this order [default: all]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    features: Vec<u32>,

    /// Slots of a page
    #[arg(long, value_name = "N", default_value = "10", value_parser = |text: &str| count(text, 1, 1000))]
    length: u64,

    /// What an entry of the matrix is made of
    #[arg(long, value_enum, default_value_t = Ties::Half)]
    ties: Ties,

    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Threads [default: one a core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Also write the matrix to a file, as `simulate --preferences` reads it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  Who beats whom among all features, and is there one that beats all others?
    rankduel estimate --letor MQ2008-S4.txt --comparisons 2e4 --out mq2008.csv

  What would a policy cost on these rankers?
    rankduel simulate --preferences mq2008.csv --policy d-ts-plus --policy uniform

  Five features, probabilistic interleaving, searchers who read a lot:
    rankduel estimate --letor MQ2008-S4.txt --features 39,23,38,37,21 --method probabilistic --clicks informational";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ties {
    /// (wins + undecided/2)/N: a page that nobody won is half a win for both
    Half,
    /// wins/(wins + losses): a page that nobody won does not count
    Skip,
    /// (1 + mean score)/2; for --method probabilistic, whose scores are from -1 to 1
    Score,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One object with every pair
    Json,
    /// The matrix
    Csv,
}

/// Run the command.
pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let method = Spec::from_text(&arguments.method)
        .map_err(|error| CommandError::Usage(format!("--method {}: {error}", arguments.method)))?;
    let users = ClickModelSpec::from_text(&arguments.clicks)
        .map_err(|error| CommandError::Usage(format!("--clicks {}: {error}", arguments.clicks)))?;
    let scores_are_probabilities = matches!(
        method.method,
        Method::Probabilistic(Probabilistic { credit: PosteriorCredit::MoreClicks, .. })
    );
    if arguments.ties == Ties::Score && !scores_are_probabilities {
        return Err(CommandError::Usage(
            "--ties score needs scores from -1 to 1: --method probabilistic with credit=more-clicks".into(),
        ));
    }
    let (data, sha256) = letor::read(&arguments.letor)?;
    let grades = letor::grades(&arguments.letor, &data, arguments.grades)?;
    let clicker = users
        .for_grades(grades)
        .map_err(|error| CommandError::Usage(format!("--clicks {}: {error}", arguments.clicks)))?;
    let rankers = letor::rankers(&data, &arguments.features)?;
    // found out before the work, so that it is not lost to a wrong path
    let out = arguments
        .out
        .as_ref()
        .map(|path| File::create(path).with_context(|| format!("writing `{}`", path.display())))
        .transpose()?;

    let comparing = Comparing {
        method,
        users: clicker,
        length: usize::try_from(arguments.length).unwrap_or(usize::MAX),
        comparisons: arguments.comparisons,
        seed: arguments.seed,
    };
    let pairs = (rankers.len() * (rankers.len() - 1) / 2) as u64;
    let plans = PlanCache::new(PLANS);
    let watched = Watched::start(arguments.threads)?;
    let counts = watched
        .work(pairs.saturating_mul(arguments.comparisons), |watch| {
            compare_all(&data, &rankers, &comparing, &plans, watch)
        })
        .ok_or_else(|| anyhow!("interrupted; half a matrix is none"))?;

    let settings = Settings {
        file: arguments.letor.display().to_string(),
        sha256,
        method: arguments.method.clone(),
        users: users.text(),
        length: comparing.length,
        comparisons: arguments.comparisons,
        seed: arguments.seed,
        entry: match arguments.ties {
            Ties::Half => Entry::Half,
            Ties::Skip => Entry::Skip,
            Ties::Score => Entry::Score,
        },
    };
    let summary = DataSummary {
        queries: data.queries.len(),
        documents: data.documents,
        grades,
        constant_features: data.constant.clone(),
    };
    let features: Vec<u32> = rankers.iter().map(|&ranker| data.features[ranker]).collect();
    let ndcg: Vec<f64> =
        rankers.iter().map(|&ranker| data.mean_ndcg(ranker, comparing.length)).collect();
    let report = Report::new(settings, summary, &features, &ndcg, &counts)
        .context("the comparisons make no matrix")?;

    if let (Some(mut file), Some(path)) = (out, &arguments.out) {
        file.write_all((this_command_as_comment() + &report.csv()).as_bytes())
            .with_context(|| format!("writing `{}`", path.display()))?;
    }
    let text = match arguments.format {
        Format::Table => report.table(),
        Format::Json => serde_json::to_string_pretty(&report).context("writing JSON")? + "\n",
        Format::Csv => report.csv(),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the result")?;
    Ok(())
}

fn this_command_as_comment() -> String {
    this_command().lines().map(|line| format!("# {}\n", line.trim_start_matches("# "))).collect()
}
