//! Standard output of the commands.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;

use super::CommandError;

/// Write the result of a command.
pub(super) fn print(text: impl AsRef<[u8]>) -> Result<(), CommandError> {
    let mut out = Output::default();
    let written = out.write_all(text.as_ref()).and_then(|()| out.flush());
    out.checked(written.context("the result cannot be written"))
}

/// Output format of a command about policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text to read
    Table,
    /// JSON array, one object for each policy
    Json,
}

/// Write the result of a command as JSON.
pub(super) fn print_json(result: &impl Serialize) -> Result<(), CommandError> {
    print(serde_json::to_string_pretty(result).context("the JSON cannot be written")? + "\n")
}

/// Whether the standard output goes nowhere.
pub(super) fn is_null() -> io::Result<bool> {
    let own = File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    let null = std::fs::metadata("/dev/null");
    Ok(null.is_ok_and(|null| own.rdev() == null.rdev()))
}

/// Standard output. A reader that has enough of it, such as `head`, is no error.
#[derive(Debug, Default)]
pub(super) struct Output {
    is_closed: bool,
}

impl Output {
    /// The result of a command that wrote to this. If the reader has gone, an error is
    /// [`CommandError::ReaderGone`].
    pub(super) fn checked<T>(&self, result: anyhow::Result<T>) -> Result<T, CommandError> {
        result.map_err(|error| match self.is_closed {
            true => CommandError::ReaderGone,
            false => error.into(),
        })
    }

    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        let closed = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
        self.is_closed |= result.as_ref().is_err_and(closed);
        result
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = io::stdout().write(bytes);
        self.noted(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = io::stdout().flush();
        self.noted(result)
    }
}
