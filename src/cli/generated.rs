//! `rankduel openapi`, `man` and `completions`: files that are generated from the program itself.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

use super::CommandError;
use super::output::print;
use crate::http;

/// Prints the description of the API.
pub(super) fn openapi() -> Result<(), CommandError> {
    print(http::yaml(&http::description())?)
}

/// Write the manual pages, one for each command
///
/// Packages install them. By hand: `man -l FOLDER/rankduel-serve.1`.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder to write to, created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

impl Man {
    /// `program` is the whole command line.
    pub(super) fn run(&self, program: Command) -> Result<(), CommandError> {
        let folder = &self.output;
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(program, folder))
            .with_context(|| {
                format!("the manual pages cannot be written to {}", folder.display())
            })?;
        Ok(())
    }
}

/// Print the completions of a shell
///
/// Packages install them. By hand, for instance:
/// `rankduel completions bash > /etc/bash_completion.d/rankduel`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// `program` is the whole command line.
    pub(super) fn run(&self, mut program: Command) -> Result<(), CommandError> {
        let name = program.get_name().to_owned();
        let mut script = Vec::new(); // the generator panics on a writer that fails
        clap_complete::generate(self.shell, &mut program, name, &mut script);
        print(script)
    }
}
