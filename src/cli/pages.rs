//! `rankduel pages`: writes a table of the answered pages of an experiment.

use clap::Args;

use super::error::CommandError;
use super::experiment_file::ExperimentFile;
use crate::service::transfer::{TableFormat, write_pages};

/// Write a table of the answered pages of an experiment, one row a page
///
/// A row has the two rankers as they were shown, the outcome and the winner, whether feedback was
/// an outcome or clicks. The experiment can be archived. The command reads the log up to its
/// current end and can run beside servers.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: ExperimentFile,

    /// How the table is written
    #[arg(long, value_enum, default_value = "csv")]
    format: TableFormat,
}

/// Runs the command.
pub(super) fn run(Arguments { file, format }: &Arguments) -> Result<(), CommandError> {
    let rows =
        file.write("table", async |store, name, out| write_pages(store, name, *format, out).await)?;
    eprintln!("wrote the answered pages of `{}`: {rows} rows", file.name);
    Ok(())
}
