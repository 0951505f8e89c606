//! `rankduel matrix`: writes the preference matrix of an experiment.

use clap::Args;

use super::error::CommandError;
use super::experiment_file::ExperimentFile;
use crate::service::transfer::write_matrix;

/// Write the preference matrix of an experiment, for `rankduel simulate` and `calibrate`
///
/// Rows and columns are the active rankers, with their names. An entry is (wins + 1) / (duels + 2):
/// how often the ranker of the row beat the ranker of the column, drawn towards 1/2 where there
/// were few duels. The command can run beside servers.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: ExperimentFile,
}

/// Runs the command.
pub(super) fn run(Arguments { file }: &Arguments) -> Result<(), CommandError> {
    let rankers =
        file.write("matrix", async |store, name, out| write_matrix(store, name, out).await)?;
    eprintln!("wrote the preference matrix of `{}`: {rankers} rankers", file.name);
    Ok(())
}
