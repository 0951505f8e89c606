//! The asynchronous runtime of a command.

use anyhow::Context as _;

use super::error::CommandError;

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot be started")?)
}
