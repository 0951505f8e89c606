//! `rankduel man`: writes the manual pages.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};

use super::error::CommandError;

/// Write the manual pages, one for each command
///
/// Packages install them. By hand: `man -l FOLDER/rankduel-serve.1`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The folder to write to, created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

/// Runs the command. `program` is the whole command line.
pub(super) fn run(arguments: &Arguments, program: Command) -> Result<(), CommandError> {
    let folder = &arguments.output;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .with_context(|| format!("the manual pages cannot be written to {}", folder.display()))?;
    Ok(())
}
