//! The commands, one file each.
//!
//! Exit codes: 0 for success; 1 for a failure while running; 2 for a wrong call, including a
//! malformed input file.

pub mod calibrate;
mod calibrate_claims;
pub mod estimate;
pub mod figures;
mod letor;
pub mod orders;
mod output;
pub mod plans;
pub mod simulate;
mod workers;

/// Why a command failed, in the words that its user reads.
#[derive(Debug)]
pub enum CommandError {
    /// The call or an input file is wrong: exit code 2.
    Usage(String),
    /// The command failed while running: exit code 1.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
