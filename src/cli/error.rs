//! The error of a command.

/// Why a command failed, in the words that its user reads.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// The call or an input file is wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command failed while running: exit code 1.
    #[error("{}", one_line(.0))]
    Failed(#[from] anyhow::Error),
}

/// An error and its causes in one line. A cause that the line already contains is not repeated.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.contains(&cause) { line } else { format!("{line}: {cause}") }
    })
}
