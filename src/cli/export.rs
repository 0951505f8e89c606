//! `rankduel export`: exports an experiment with its log as JSON lines.

use clap::Args;

use super::error::CommandError;
use super::experiment_file::ExperimentFile;
use crate::service::transfer;

/// Export an experiment with its log as JSON lines, for `rankduel import` and your own tools
///
/// The experiment can be archived. The command reads the log up to its current end and can run
/// beside servers.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: ExperimentFile,
}

/// Runs the command.
pub(super) fn run(Arguments { file }: &Arguments) -> Result<(), CommandError> {
    let entries =
        file.write("export", async |store, name, out| transfer::export(store, name, out).await)?;
    eprintln!("exported `{}`: {entries} log entries", file.name);
    Ok(())
}
