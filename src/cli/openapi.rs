//! `rankduel openapi`: prints the API description.

use std::io::Write as _;

use anyhow::Context as _;

use super::error::CommandError;
use crate::http;

/// Runs the command.
pub(super) fn run() -> Result<(), CommandError> {
    let yaml =
        http::description().to_yaml().context("the description cannot be written as YAML")?;
    std::io::stdout().write_all(yaml.as_bytes()).context("the description cannot be printed")?;
    Ok(())
}
