//! The database of a command.

use anyhow::{Context as _, anyhow};

use super::{CommandError, runtime};
use crate::config::StoreArgs;
use rankduel_store::{ConnectError, Place, SharedStore, StoreError, connect_with};

/// Opens the store of this URL. An invalid URL is a wrong call.
pub(super) async fn open_store(url: &str) -> Result<SharedStore, CommandError> {
    open_store_with(url, None).await
}

/// [`open_store`], with the URL of the same database without a pooler.
pub(super) async fn open_store_with(
    url: &str,
    direct: Option<&str>,
) -> Result<SharedStore, CommandError> {
    connect_with(url, direct).await.map_err(refused)
}

/// The use that a command makes of its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It only reads: the database must exist.
    Reads,
    /// It changes something, and names the database: it may not be the one that its user means.
    Changes,
    /// The same, and it creates a database where there is none.
    Creates,
}

/// Do `work` with the store of a command, whose schema must be the one of this version.
pub(super) fn with_store<T>(
    args: &StoreArgs,
    access: Access,
    work: impl AsyncFnOnce(&SharedStore) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let place = place(&args.database_url)?;
    let is_new = place.is_absent();
    if is_new && access != Access::Creates {
        let why = anyhow!("there is no database {place}; set RANKDUEL_DATABASE_URL");
        return Err(why.into());
    }
    if access != Access::Reads {
        eprintln!("database: {place}");
    }
    runtime()?.block_on(async {
        let store = open_store(&args.database_url).await?;
        if is_new {
            store.migrate().await.context("the schema cannot be created")?;
        }
        store.check().await.context("the database cannot be used")?;
        let done = work(&store).await;
        store.close().await;
        done
    })
}

/// The place of the database with this URL.
pub(super) fn place(url: &str) -> Result<Place, CommandError> {
    Place::of(url).map_err(refused)
}

fn refused(error: ConnectError) -> CommandError {
    match error {
        ConnectError::Url(detail) => CommandError::Usage(format!("--database-url: {detail}")),
        error @ (ConnectError::File { .. } | ConnectError::Lost { .. }) => {
            CommandError::Failed(anyhow::Error::new(error).context("the database cannot be opened"))
        }
    }
}

/// Whether the database has API keys. One that does not exist has none, and is not created.
pub(super) async fn has_api_keys(url: &str) -> Result<bool, CommandError> {
    if place(url)?.is_absent() {
        return Ok(false);
    }
    let store = open_store(url).await?;
    let keys = store.api_keys().await;
    store.close().await;
    match keys {
        Ok(keys) => Ok(!keys.is_empty()),
        Err(StoreError::Schema(_)) => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("the API keys cannot be read").into()),
    }
}
