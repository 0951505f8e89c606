//! `rankduel completions`: prints the completions of a shell.

use std::io::Write as _;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

use super::error::CommandError;

/// Print the completions of a shell
///
/// Packages install them. By hand, for instance:
/// `rankduel completions bash > /etc/bash_completion.d/rankduel`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command. `program` is the whole command line.
pub(super) fn run(arguments: &Arguments, mut program: Command) -> Result<(), CommandError> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new(); // the generator panics on a writer that fails
    clap_complete::generate(arguments.shell, &mut program, name, &mut script);
    std::io::stdout().write_all(&script).context("the completions cannot be printed")?;
    Ok(())
}
