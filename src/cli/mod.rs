//! The command line: one file a command.
//!
//! Exit codes: 0 done; 1 it failed while running; 2 it was called wrongly (also: a malformed input file).

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod simulate;
mod values;
mod watched;

/// Online ranker evaluation with dueling bandits.
#[derive(Debug, Parser)]
#[command(name = "rankduel", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(simulate::Arguments),
}

/// A command that did not do what it was asked, as it is told to the person who ran it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The call or an input file is wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// It failed while running: exit code 1.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

/// Parse the command line, run the command, and say on standard error what went wrong.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result: Result<(), CommandError> = match cli.command {
        Command::Simulate(arguments) => simulate::run(&arguments),
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
