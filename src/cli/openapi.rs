//! `rankduel openapi`: the description of the API.

use std::io::Write as _;

use anyhow::Context as _;

use super::CommandError;
use crate::http;

/// Print it as YAML.
pub(super) fn run() -> Result<(), CommandError> {
    let yaml = http::description().to_yaml().context("the description cannot be written")?;
    std::io::stdout().write_all(yaml.as_bytes()).context("standard output")?;
    Ok(())
}
