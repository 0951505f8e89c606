//! The top of the command line: parses it and runs one command.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use super::error::CommandError;
use super::{
    bench, calibrate, completions, demo, estimate, export, figures, health, import, keys, man,
    matrix, migrate, openapi, pages, policies, prune, replay, segments, sensitivity, serve,
    signing_keys, simulate, verify,
};
use crate::config::ServeArgs;

/// Online ranker evaluation with dueling bandits.
#[derive(Debug, Parser)]
#[command(name = "rankduel", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo: a server, an experiment and simulated users.
    Demo(demo::DemoArgs),
    /// Run the server.
    Serve(ServeArgs),
    /// Check the health of a running server: exit code 0 if it is healthy, 1 if not.
    Health(health::HealthArgs),
    Migrate(migrate::Arguments),
    /// Print the API description (OpenAPI 3.1, YAML).
    Openapi,
    Export(export::Arguments),
    Pages(pages::Arguments),
    Segments(segments::Arguments),
    Matrix(matrix::Arguments),
    Import(import::Arguments),
    Prune(prune::Arguments),
    Replay(replay::Arguments),
    Verify(verify::Arguments),
    Keys(keys::Arguments),
    SigningKeys(signing_keys::Arguments),
    Policies(policies::Arguments),
    Simulate(simulate::Arguments),
    Calibrate(calibrate::Arguments),
    Estimate(estimate::Arguments),
    Sensitivity(sensitivity::Arguments),
    Figures(figures::Arguments),
    Bench(bench::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Parses the command line and runs the command. Prints an error on standard error.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result: Result<(), CommandError> = match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Health(args) => health::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Openapi => openapi::run(),
        Command::Export(arguments) => export::run(&arguments),
        Command::Pages(arguments) => pages::run(&arguments),
        Command::Segments(arguments) => segments::run(&arguments),
        Command::Matrix(arguments) => matrix::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Prune(arguments) => prune::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::SigningKeys(arguments) => signing_keys::run(&arguments),
        Command::Policies(arguments) => policies::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Estimate(arguments) => estimate::run(&arguments),
        Command::Sensitivity(arguments) => sensitivity::run(&arguments),
        Command::Figures(arguments) => figures::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Completions(arguments) => completions::run(&arguments, Cli::command()),
        Command::Man(arguments) => man::run(&arguments, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rankduel: {error}");
            match error {
                CommandError::Usage(_) => ExitCode::from(2),
                CommandError::Failed(_) => ExitCode::FAILURE,
            }
        }
    }
}
