//! `lab plans`: compares plans with simulated experiments.

use std::fmt::Write as _;

use clap::Args;

use super::CommandError;
use super::workers::{Common, Workers};
use dueling_bandits::evidence::Target;
use dueling_bandits::preference::PreferenceMatrix;
use lab::simulate::plans::{PlanComparison, PlanTrial, World};
use lab::values::{between, count};

/// Compare plans of experiments with how many pages the experiments take
///
/// Each experiment runs the default policy until its verdict, with every answer counting. Without
/// --preferences the worlds are: one close rival, geometric ladders, equal rivals and a far leader,
/// each compared with the plan that names such rivals. A matrix is compared with all plans for its
/// number of rankers and the lead of its Condorcet winner.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of rankers of the worlds; can be repeated
    #[arg(long = "rankers", value_name = "N", default_values = ["2", "3", "6", "12"], value_parser = |text: &str| count(text, 2, 100))]
    rankers: Vec<u64>,

    /// By how much the best ranker beats the second best; can be repeated
    #[arg(long = "difference", value_name = "SHARE", default_values = ["0.04", "0.1"], value_parser = |text: &str| between(text, 0.001, 0.45))]
    differences: Vec<f64>,

    /// The same for the world with a far leader; can be repeated
    #[arg(long = "far", value_name = "SHARE", default_values = ["0.25"], value_parser = |text: &str| between(text, 0.001, 0.45))]
    far: Vec<f64>,

    /// A preference matrix instead of the worlds, as in `lab simulate`; can be repeated
    #[arg(long, value_name = "MATRIX")]
    preferences: Vec<String>,

    /// Number of experiments of each set
    #[arg(long, value_name = "N", default_value = "100", value_parser = |text: &str| count(text, 1, 1_000_000))]
    runs: u64,

    /// Confidence of the verdict
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = |text: &str| between(text, 0.5, 0.9999))]
    confidence: f64,

    /// Margin of the verdict
    #[arg(long, value_name = "M", default_value = "0.01", value_parser = |text: &str| between(text, 0.0, 0.2))]
    margin: f64,

    /// By orders, with so many pages a day, of which one in 40 has an order: a unit for each home
    #[arg(long, value_name = "N", conflicts_with_all = ["confidence", "margin"], value_parser = |text: &str| between(text, 1.0, 1e9))]
    by_orders: Option<f64>,

    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let trials = arguments.trials()?;
    let workers = Workers::start(arguments.common.threads)?;
    // how many steps it takes is the question
    let found: Vec<PlanComparison> =
        workers.work(0, |progress| trials.iter().flat_map(|trial| trial.run(progress)).collect());
    Ok(arguments.common.format.print(&found, || table(&found))?)
}

impl Arguments {
    fn trials(&self) -> Result<Vec<PlanTrial>, CommandError> {
        let target = Target { confidence: self.confidence, margin: self.margin };
        let trial = |name, matrix, rivals| PlanTrial {
            name,
            matrix,
            rivals,
            target,
            by_orders: self.by_orders,
            runs: self.runs,
            seed: self.common.seed,
        };
        if !self.preferences.is_empty() {
            let load = |name: &String| match PreferenceMatrix::load(name) {
                Ok(matrix) if matrix.condorcet_winner().is_some() => {
                    Ok(trial(name.clone(), matrix, None))
                }
                Ok(_) => Err(format!("--preferences {name}: no ranker beats all others")),
                Err(error) => Err(format!("--preferences {name}: {error}")),
            };
            return self
                .preferences
                .iter()
                .map(load)
                .collect::<Result<_, _>>()
                .map_err(CommandError::Usage);
        }
        let mut trials = Vec::new();
        for world in World::ALL {
            let differences = if world == World::FarLeader { &self.far } else { &self.differences };
            for &rankers in &self.rankers {
                let rankers = rankers as usize;
                for &difference in differences {
                    // with two rankers the worlds are the same
                    if rankers > 2 || [World::AllEqual, World::FarLeader].contains(&world) {
                        let matrix = world.matrix(rankers, difference);
                        let rivals = world.rivals(rankers);
                        trials.push(trial(format!("{world:?}"), matrix, Some(rivals)));
                    }
                }
            }
        }
        Ok(trials)
    }
}

fn table(found: &[PlanComparison]) -> String {
    let mut text = String::from(
        "| set | rankers | difference | plan | simulated at | planned | took | took / planned | above nine of ten |\n\
         | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for it in found {
        let _ = writeln!(
            text,
            "| {} | {} | {:.3} | {} | {:.3} | {:.0} | {:.0} | {:.2} | {:.0} % |",
            it.set,
            it.rankers,
            it.difference,
            it.plan,
            it.simulated,
            it.planned,
            it.took,
            it.took / it.planned,
            100.0 * it.above_high,
        );
    }
    text
}
