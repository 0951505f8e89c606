//! `lab orders` and `lab lift`: experiments that orders decide.

use std::fmt::Write as _;

use clap::Args;

use super::CommandError;
use super::output::percent;
use super::workers::{Common, Workers};
use lab::simulate::orders::lift::{LiftFound, LiftTrial};
use lab::simulate::orders::nulls::{self, Null, NullFound};
use lab::simulate::orders::power::{self, Truth, Verdicts};
use lab::values::{between, count};

fn null(text: &str) -> Result<Null, String> {
    let known = Null::ALL.iter().find(|(name, _)| *name == text);
    let names: Vec<_> = Null::ALL.iter().map(|(name, _)| *name).collect();
    known.map(|&(_, null)| null).ok_or_else(|| format!("one of {}", names.join(", ")))
}

/// Measure verdicts by orders: how often wrong, and after how many pages
///
/// Experiments fold links and orders into the baskets of the service, in a random order of arrival,
/// and are looked at after every basket.
#[derive(Debug, Args)]
pub struct Arguments {
    /// An even truth; can be repeated
    #[arg(long = "null", value_name = "NAME", value_parser = null)]
    nulls: Vec<Null>,

    /// The first ranker is better: pages by orders, by clicks, and with two arms
    #[arg(long)]
    power: bool,

    /// The first ranker attracts clicks and sells less
    #[arg(long)]
    bait: bool,

    /// Of three rankers, the first one attracts clicks, and the second one sells most
    #[arg(long)]
    three: bool,

    /// Number of experiments [default: 2000 of an even truth, 200 of others]
    #[arg(long, value_name = "N", value_parser = |text: &str| count(text, 1, 1_000_000))]
    runs: Option<u64>,

    /// How many times as long experiments of an even truth are: some 400 units order
    #[arg(long, value_name = "N", default_value = "1", value_parser = |text: &str| count(text, 1, 1000))]
    times: u64,

    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let &Arguments { ref nulls, power, bait, three, runs, times, ref common } = arguments;
    if nulls.is_empty() && !power && !bait && !three {
        let detail = "nothing to measure: name --null, --power, --bait or --three".into();
        return Err(CommandError::Usage(detail));
    }
    let workers = Workers::start(common.threads)?;
    let of_null = |&null: &Null| {
        let runs = runs.unwrap_or(2000);
        workers.work(runs, |progress| nulls::run(null, times, runs, common.seed, progress))
    };
    let nulls: Vec<NullFound> = nulls.iter().map(of_null).collect();
    let of_truth = |(_, truth)| {
        let runs = runs.unwrap_or(200);
        workers.work(2 * runs, |progress| power::run(truth, runs, common.seed, progress))
    };
    let truths = [(power, Truth::Better), (bait, Truth::Bait)];
    let mut verdicts: Vec<_> = truths.into_iter().filter(|it| it.0).flat_map(of_truth).collect();
    if three {
        let runs = runs.unwrap_or(200);
        let work = |progress: &_| power::three(runs, common.seed, progress);
        verdicts.extend(workers.work(2 * runs, work));
    }
    if !nulls.is_empty() {
        common.format.print(&nulls, || null_table(&nulls))?;
    }
    if !verdicts.is_empty() {
        common.format.print(&verdicts, || verdict_table(&verdicts))?;
    }
    Ok(())
}

fn interval([share, low, high]: [f64; 3]) -> String {
    format!("{:.2} % ({:.1}–{:.1})", 100.0 * share, 100.0 * low, 100.0 * high)
}

fn null_table(found: &[NullFound]) -> String {
    let mut text = String::from(
        "| even truth | runs | first proven | second proven | without a doubt | drift | mean score | of |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for it in found {
        let name = Null::ALL.iter().find(|(_, null)| *null == it.null).map_or("", |it| it.0);
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {:+.4} | {:.0} |",
            it.runs,
            interval(it.first),
            interval(it.second),
            it.undoubted.map_or_else(|| "–".into(), interval),
            interval(it.drifted),
            it.mean_score,
            it.baskets,
        );
    }
    text
}

fn verdict_table(found: &[Verdicts]) -> String {
    let mut text = String::from(
        "| by | of the first | runs | first, second … proven | median pages | 90 % |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for it in found {
        let [median, most] = it.pages.map(|it| it.map_or_else(|| "–".into(), |it| it.to_string()));
        let (by, runs) = (it.by, it.runs);
        let share = it.share.map_or_else(|| "–".into(), percent);
        let proven: Vec<_> = it.proven.iter().map(ToString::to_string).collect();
        let proven = proven.join(", ");
        let _ = writeln!(text, "| {by} | {share} | {runs} | {proven} | {median} | {most} |");
    }
    text
}

/// Measure the interval of the lift: how wide it is, and how often it misses the truth
///
/// Units see the leader or the control alone, by a fair coin.
#[derive(Debug, Args)]
pub struct LiftArguments {
    /// Relative lift of the mean number of orders
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = |text: &str| between(text, -0.9, 9.0))]
    lift: f64,

    /// Mean number of orders of a unit, over 1.35: 0.1 for 11.5 % of units that order
    #[arg(long, value_name = "N", default_value = "0.1", value_parser = |text: &str| between(text, 1e-4, 10.0))]
    orders: f64,

    /// Cut of the money of a unit; the mean order is 40
    #[arg(long, value_name = "MONEY", default_value = "80", value_parser = |text: &str| between(text, 1.0, 1e6))]
    cap: f64,

    /// Units that see one ranker alone, in each experiment
    #[arg(long, value_name = "N", default_value = "100000", value_parser = |text: &str| count(text, 3000, 10_000_000))]
    units: u64,

    /// Number of experiments
    #[arg(long, value_name = "N", default_value = "2000", value_parser = |text: &str| count(text, 1, 1_000_000))]
    runs: u64,

    #[command(flatten)]
    common: Common,
}

pub fn run_lift(arguments: &LiftArguments) -> Result<(), CommandError> {
    let &LiftArguments { lift, orders, cap, units, runs, ref common } = arguments;
    let trial = LiftTrial { lift, orders, cap, units, runs, seed: common.seed };
    let workers = Workers::start(common.threads)?;
    let found = workers.work(runs, |progress| trial.run(progress)).unwrap_or_default();
    Ok(common.format.print(&found, || lift_table(&found))?)
}

fn lift_table(found: &[LiftFound]) -> String {
    let mut text = String::from(
        "| lift of | units that order | true lift | runs | ever missed | half width after units |\n\
         | --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    for it in found {
        let width = |(units, half): &(u64, f64)| format!("{units}: {}", percent(*half));
        let widths: Vec<_> = it.half_widths.iter().map(width).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            it.of,
            percent(it.ordering),
            percent(it.lift),
            it.runs,
            interval(it.missed),
            widths.join(", "),
        );
    }
    text
}
