//! The command line, one file for each command or a few that belong together.
//!
//! Exit codes: 0 for success; 1 for a failure while running; 2 for a wrong call, including a
//! malformed input file.

mod database;
mod demo;
mod environment;
mod experiment_file;
mod generated;
mod health;
mod import;
mod keys;
mod migrate;
mod orders;
mod output;
mod plan;
mod policies;
mod prune;
mod serve;
mod signing_keys;
mod verify;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::config::ServeArgs;

/// The version with what the program was built from; build.rs sets both variables.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("BUILD_COMMIT"),
    "; features: ",
    env!("BUILD_FEATURES"),
    ")"
);

/// Online ranker evaluation with dueling bandits.
#[derive(Debug, Parser)]
#[command(name = "rankduel", version, long_version = LONG_VERSION, about, max_term_width = 100)]
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
    /// Export an experiment with its log as JSON lines, for `rankduel import` and your own tools
    ///
    /// The experiment can be archived. The command reads the log up to its current end and can run
    /// beside servers.
    Export(experiment_file::ExperimentFile),
    Pages(experiment_file::Pages),
    Import(import::Arguments),
    Prune(prune::Arguments),
    Verify(verify::Arguments),
    Keys(keys::Arguments),
    SigningKeys(signing_keys::Arguments),
    Orders(orders::Arguments),
    Plan(plan::Arguments),
    Policies(policies::Arguments),
    Completions(generated::Completions),
    Man(generated::Man),
}

/// Parses the command line and runs the command. Prints an error on standard error.
pub fn run() -> ExitCode {
    let program = match environment::checked(Cli::command()) {
        Ok(program) => program,
        Err(why) => {
            eprintln!("rankduel: {why}");
            return ExitCode::from(2);
        }
    };
    let cli = match Cli::from_arg_matches(&program.get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let result: Result<(), CommandError> = match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Health(args) => health::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Openapi => generated::openapi(),
        Command::Export(file) => experiment_file::export(&file),
        Command::Pages(arguments) => arguments.run(),
        Command::Import(arguments) => import::run(&arguments),
        Command::Prune(arguments) => prune::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::SigningKeys(arguments) => signing_keys::run(&arguments),
        Command::Orders(arguments) => orders::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Policies(arguments) => policies::run(&arguments),
        Command::Completions(arguments) => arguments.run(Cli::command()),
        Command::Man(arguments) => arguments.run(Cli::command()),
    };
    match result {
        Ok(()) | Err(CommandError::ReaderGone) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rankduel: {error}");
            match error {
                CommandError::Usage(_) => ExitCode::from(2),
                CommandError::Failed(_) | CommandError::ReaderGone => ExitCode::FAILURE,
            }
        }
    }
}

/// Why a command failed, in the words that its user reads.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    /// The call or an input file is wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command failed while running: exit code 1.
    #[error("{}", one_line(.0))]
    Failed(#[from] anyhow::Error),
    /// The reader of standard output has enough of it: no error.
    #[error("the reader of standard output is gone")]
    ReaderGone,
}

/// An error and its causes in one line. A cause that the line already contains is not repeated.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.contains(&cause) { line } else { format!("{line}: {cause}") }
    })
}

/// The asynchronous runtime of a command.
fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot be started")?)
}
