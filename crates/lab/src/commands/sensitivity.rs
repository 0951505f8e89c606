//! `lab sensitivity`: pages to a verdict of interleaving methods, and false verdicts.

use std::fmt::Write as _;

use anyhow::{Context, anyhow};
use clap::Args;
use serde::Serialize;

use super::CommandError;
use super::letor::{LetorArguments, method};
use super::output::Format;
use super::workers::Workers;
use interleaving::{ClickWeights, Spec};
use lab::estimate::learn::learn;
use lab::estimate::pairs;
use lab::estimate::sensitivity::{Experiments, PairVerdicts, Verdicts, experiment};
use lab::values::{between, count};

/// Measure how many pages each interleaving method takes to a verdict
///
/// The rankers are the features of a learning-to-rank file, as for `estimate`. Each pair of them is
/// compared in many experiments, page by page, until the service's rule for two rankers certifies
/// one of them. An experiment counts the outcomes that are wins (ties are skipped), and beside them
/// the shares of the pages, rounded as the service does it.
///
/// If all documents of the file have the same grade, clicks ignore the rankers, and with a margin
/// of 0 every verdict is false.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    letor: LetorArguments,

    /// Interleaving method, repeatable: KIND or KIND:name=value,name=value
    #[arg(long = "method", value_name = "METHOD", default_value = "team-draft")]
    methods: Vec<String>,

    /// Number of experiments with each pair
    #[arg(long, value_name = "N", default_value = "100", value_parser = |text: &str| count(text, 1, 1_000_000))]
    experiments: u64,

    /// Pages after which an experiment without a verdict ends; the form 2e4 is accepted
    #[arg(long, value_name = "N", default_value = "20000", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    pages: u64,

    /// Confidence of the verdict
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = |text: &str| between(text, 0.5, 0.999_999))]
    confidence: f64,

    /// Margin of the verdict
    #[arg(long, value_name = "P", default_value_t = 0.01, value_parser = |text: &str| between(text, 0.0, 0.49))]
    margin: f64,

    /// First learn weights of clicks from so many pages of each pair, and print them
    ///
    /// The better ranker of a pair is the one with the higher mean NDCG. The weights are measured
    /// beside the method without them, on other pages. Needs a method whose credit adds up clicks.
    #[arg(long, value_name = "PAGES", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    learn: Option<u64>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  Compare the verdicts of a sign and of a score:
    lab sensitivity --letor MQ2008-S4.txt --features 39,23,38,37,21 \\
        --method optimized:verdict=sign --method optimized --clicks informational";

#[derive(Debug, Serialize)]
struct Row {
    method: String,
    pairs: Vec<Pair>,
    #[serde(skip)]
    total: PairVerdicts,
}

#[derive(Debug, Serialize)]
struct Pair {
    features: [u32; 2],
    #[serde(flatten)]
    verdicts: PairVerdicts,
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let named = |text: &String| Ok((text.clone(), method(text)?));
    let mut methods =
        arguments.methods.iter().map(named).collect::<Result<Vec<_>, CommandError>>()?;
    let inputs = arguments.letor.read()?;
    let pairs = pairs(&inputs.rankers);

    if let Some(pages) = arguments.learn {
        let ndcg = |ranker: usize| inputs.data.mean_ndcg(ranker, inputs.length);
        let better_first: Vec<(usize, usize)> =
            pairs.iter().map(|&(i, j)| if ndcg(i) >= ndcg(j) { (i, j) } else { (j, i) }).collect();
        for (text, method) in methods.clone() {
            let weighted = |weights| Spec { click_weights: Some(weights), ..method };
            let check = |spec: Spec| match spec.validate() {
                Ok(()) => Ok(spec),
                Err(error) => {
                    Err(CommandError::Usage(format!("--learn with --method {text}: {error}")))
                }
            };
            check(weighted(ClickWeights::default()))?;
            let learned = learn(&inputs.pages(method), &better_first, pages);
            let weights =
                serde_json::to_string(&learned.weights).context("the weights cannot be written")?;
            eprintln!(
                "{text}: {:.2} times the pages to a verdict, as expected from held-out pages, with \
                 {weights}",
                learned.rate_before / learned.rate_after
            );
            let spec = check(weighted(learned.weights))?;
            methods.push((format!("{text} with click_weights={weights}"), spec));
        }
    }
    let parameters = Experiments {
        experiments: arguments.experiments,
        most_pages: arguments.pages,
        error: 1.0 - arguments.confidence,
        margin: arguments.margin,
    };
    let workers = Workers::start(arguments.letor.threads)?;
    let steps = (pairs.len() * methods.len()) as u64 * arguments.experiments;
    let rows = workers.work(steps, |progress| {
        let of_method = |(text, method): &(String, Spec)| {
            let mut row =
                Row { method: text.clone(), pairs: Vec::new(), total: PairVerdicts::default() };
            for &pair in &pairs {
                let verdicts = experiment(&inputs.pages(*method), pair, &parameters, progress)?;
                row.total.by_outcomes.add(&verdicts.by_outcomes);
                row.total.by_shares.add(&verdicts.by_shares);
                let features = [pair.0, pair.1].map(|ranker| inputs.data.features[ranker]);
                row.pairs.push(Pair { features, verdicts });
            }
            Some(row)
        };
        methods.iter().map(of_method).collect::<Option<Vec<Row>>>()
    });
    let rows = rows.ok_or_else(|| anyhow!("interrupted; there is no partial result"))?;
    arguments.format.print(&rows, || {
        format!(
            "{}: SHA-256 {}; click model {}, {} experiments with each of {} pairs, at most {} \
             pages, seed {}\n{}",
            arguments.letor.letor.display(),
            inputs.sha256,
            inputs.users,
            arguments.experiments,
            pairs.len(),
            arguments.pages,
            arguments.letor.seed,
            table(&rows)
        )
    })?;
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let mut text =
        String::from("\n    first   second  no verdict  mean pages  median  counted   method\n");
    for row in rows {
        for (counted, verdicts) in
            [("outcomes", &row.total.by_outcomes), ("shares", &row.total.by_shares)]
        {
            let Verdicts { experiments, first, second, .. } = *verdicts;
            let share = |count: u64| count as f64 / experiments as f64;
            let _ = writeln!(
                text,
                "{:>9.4}{:>9.4}{:>12.4}{:>12.0}{:>8}  {counted:<9} {}",
                share(first),
                share(second),
                share(experiments - first - second),
                verdicts.mean_pages(),
                verdicts.median_pages().map_or("-".into(), |pages| pages.to_string()),
                row.method
            );
        }
    }
    text
}
