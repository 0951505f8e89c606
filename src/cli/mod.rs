//! The command line: one file a command.
//!
//! Exit codes: 0 done; 1 it failed while running; 2 it was called wrongly (also: a malformed input
//! file).

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::config::{ServeArgs, StoreArgs};
use crate::store::{ConnectError, SharedStore, StoreError, connect};

mod bench;
mod calibrate;
mod demo;
mod estimate;
mod export;
mod figures;
mod health;
mod import;
mod keys;
mod letor;
mod migrate;
mod openapi;
mod output;
mod policies;
mod prune;
mod replay;
mod serve;
mod signing_keys;
mod simulate;
mod values;
mod verify;
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
    /// Show the whole service at work: a server, an experiment and simulated users.
    Demo(demo::DemoArgs),
    /// Run the server.
    Serve(ServeArgs),
    /// Ask a running server whether it is well: exit code 0 if so, else 1.
    Health(health::HealthArgs),
    /// Bring a database's schema up to date.
    Migrate(StoreArgs),
    /// Print the description of the API (OpenAPI 3.1, YAML).
    Openapi,
    Export(export::Arguments),
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
    Figures(figures::Arguments),
    Bench(bench::Arguments),
}

/// A command that did not do what it was asked, as it is told to the person who ran it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The call or an input file is wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// It failed while running: exit code 1.
    #[error("{}", one_line(.0))]
    Failed(#[from] anyhow::Error),
}

/// An error and its causes, in one line; a cause whose words its effect has already is not said
/// again.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.contains(&cause) { line } else { format!("{line}: {cause}") }
    })
}

/// Parse the command line, run the command, and say on standard error what went wrong.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result: Result<(), CommandError> = match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Health(args) => health::run(&args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Openapi => openapi::run(),
        Command::Export(arguments) => export::run(&arguments),
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
        Command::Figures(arguments) => figures::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
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

fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot start")?)
}

/// Whether the database of this URL has API keys. One that is not there yet has none, and is not
/// made.
async fn stored_keys(url: &str) -> Result<bool, CommandError> {
    let existing = if url.starts_with("sqlite:") && !url.contains('?') {
        format!("{url}?mode=rw")
    } else {
        url.into()
    };
    let store = match connect(&existing).await {
        Ok(store) => store,
        Err(ConnectError::Url(what)) => {
            return Err(CommandError::Usage(format!("--database-url: {what}")));
        }
        Err(ConnectError::File { .. }) => return Ok(false),
    };
    let keys = store.api_keys().await;
    store.close().await;
    match keys {
        Ok(keys) => Ok(!keys.is_empty()),
        Err(StoreError::Schema(_)) => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("the API keys cannot be read").into()),
    }
}

/// The store of this URL; what is wrong with the URL itself is a wrong call.
async fn open_store(url: &str) -> Result<SharedStore, CommandError> {
    connect(url).await.map_err(|error| match error {
        ConnectError::Url(what) => CommandError::Usage(format!("--database-url: {what}")),
        error @ ConnectError::File { .. } => {
            CommandError::Failed(anyhow::Error::new(error).context("the database cannot be opened"))
        }
    })
}
