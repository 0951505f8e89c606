//! `rankduel migrate`: bring a database's schema up to date.

use anyhow::Context as _;

use super::{CommandError, open_store};
use crate::config::StoreArgs;
use crate::store::{Database, StoreError};

/// Migrate, and say what was done.
pub(super) fn run(args: &StoreArgs) -> Result<(), CommandError> {
    super::runtime()?.block_on(async {
        let store = open_store(&args.database_url).await?;
        let done = bring_up_to_date(&*store).await;
        store.close().await;
        println!("The {} database {}.", store.kind(), done?);
        Ok(())
    })
}

async fn bring_up_to_date(store: &dyn Database) -> anyhow::Result<&'static str> {
    match store.check().await {
        Ok(()) => Ok("has this program's schema already; nothing was changed"),
        Err(StoreError::Schema(_)) => {
            store.migrate().await.context("the schema cannot be brought up to date")?;
            store
                .check()
                .await
                .context("the schema is not this program's even after the migration")?;
            Ok("now has this program's schema")
        }
        Err(other) => Err(other.into()),
    }
}
