//! The `lab` program: reads its command line and runs one command.
#![forbid(unsafe_code)]

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use commands::CommandError;
use commands::{calibrate, estimate, figures, orders, plans, simulate};

/// Simulations of dueling bandits and interleaving.
#[derive(Debug, Parser)]
#[command(name = "lab", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(simulate::Arguments),
    Calibrate(calibrate::Arguments),
    Plans(plans::Arguments),
    Estimate(estimate::Arguments),
    Figures(figures::Arguments),
    Orders(orders::Arguments),
    Lift(orders::LiftArguments),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Plans(arguments) => plans::run(&arguments),
        Command::Estimate(arguments) => estimate::run(&arguments),
        Command::Figures(arguments) => figures::run(&arguments),
        Command::Orders(arguments) => orders::run(&arguments),
        Command::Lift(arguments) => orders::run_lift(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Usage(detail)) => {
            eprintln!("lab: {detail}");
            ExitCode::from(2)
        }
        Err(CommandError::Failed(error)) => {
            eprintln!("lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
