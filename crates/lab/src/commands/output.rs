//! Results on standard output, and a folder of results: curves, and the command that reproduces
//! them.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text to read
    Table,
    /// JSON with every detail
    Json,
}

impl Format {
    pub fn print(
        self,
        found: &impl Serialize,
        table: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Table => print(&table()),
            Self::Json => print_json(found),
        }
    }
}

pub(super) fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("the result cannot be written")
}

pub(super) fn print_json(found: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(found).context("the JSON cannot be written")? + "\n"))
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A folder for results.
#[derive(Debug)]
pub(super) struct Output {
    folder: PathBuf,
}

impl Output {
    /// Opens the folder, and creates it if necessary. Commands call this before their work, so that
    /// a wrong path does not lose any results.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
        Ok(Self { folder: folder.into() })
    }

    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// This call as a line for a shell, after a comment with the version of the program.
pub(super) fn this_command() -> String {
    let arguments = std::env::args_os().skip(1).map(shell_quoted);
    let line = std::iter::once("lab".to_string()).chain(arguments).collect::<Vec<_>>().join(" ");
    format!("# lab {}\n{line}\n", env!("CARGO_PKG_VERSION"))
}

/// A word quoted for a shell.
pub(super) fn shell_quoted(argument: impl AsRef<OsStr>) -> String {
    let text = argument.as_ref().to_string_lossy();
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
