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
        let urls = args.database_urls();
        let store = open_store(&urls).await?;
        let done = migrate(&*store, urls.len() > 1).await;
        store.close().await;
        let which = match urls.len() {
            1 => format!("The {} database", store.kind()),
            many => format!("Each of the {many} databases"),
        };
        println!("{which} {}.", done?);
        Ok(())
    })
}

async fn migrate(store: &dyn Database, several: bool) -> anyhow::Result<&'static str> {
    match store.check().await {
        Ok(()) => Ok("already has the schema of this version; nothing was changed"),
        Err(error) if is_behind(&error, several) => {
            let failed = match several {
                true => "the databases cannot be made ready",
                false => "the schema cannot be updated",
            };
            store.migrate().await.context(failed)?;
            store
                .check()
                .await
                .context("after the migration, the schema is not the one of this version")?;
            Ok("now has the schema of this version")
        }
        Err(other) => Err(other.into()),
    }
}

/// Whether a migration can help: the schema is older, or `several` databases are not a set yet.
fn is_behind(error: &StoreError, several: bool) -> bool {
    match error.kind() {
        StoreError::Schema(_) => true,
        StoreError::Set(_) => several,
        _ => false,
    }
}
