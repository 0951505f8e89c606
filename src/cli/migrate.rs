//! `rankduel migrate`: updates the schema of a database.

use anyhow::Context as _;

use super::database::open_store;
use super::error::CommandError;
use super::runtime::runtime;
use crate::config::StoreArgs;
use crate::store::{Database, StoreError};
use crate::telemetry::logging::{self, LogFormat};

/// Runs the command.
pub(super) fn run(args: &StoreArgs) -> Result<(), CommandError> {
    // what a migration waits for is a warning
    logging::init("rankduel=warn", LogFormat::Auto)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    runtime()?.block_on(async {
        let store = open_store(&args.database_url).await?;
        let done = migrate(&*store).await;
        store.close().await;
        println!("The {} database {}.", store.kind(), done?);
        Ok(())
    })
}

async fn migrate(store: &dyn Database) -> anyhow::Result<&'static str> {
    match store.check().await {
        Ok(()) => Ok("already has the schema of this version; nothing was changed"),
        Err(StoreError::Schema(_)) => {
            store.migrate().await.context("the schema cannot be updated")?;
            store
                .check()
                .await
                .context("after the migration, the schema is not the one of this version")?;
            Ok("now has the schema of this version")
        }
        Err(other) => Err(other.into()),
    }
}
