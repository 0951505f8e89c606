//! The database of a command.

use anyhow::Context as _;

use super::{CommandError, runtime};
use crate::config::StoreArgs;
use rankduel_store::{ConnectError, SharedStore, StoreError, connect, connect_with};

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

/// Do `work` with the store of a command, whose schema must be the one of this version.
pub(super) fn with_store<T>(
    args: &StoreArgs,
    work: impl AsyncFnOnce(&SharedStore) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    runtime()?.block_on(async {
        let store = open_store(&args.database_url).await?;
        store.check().await.context("the database cannot be used")?;
        let done = work(&store).await;
        store.close().await;
        done
    })
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
    let existing = if url.starts_with("sqlite:") && !url.contains('?') {
        format!("{url}?mode=rw")
    } else {
        url.into()
    };
    let store = match connect(&existing).await {
        Ok(store) => store,
        Err(error @ (ConnectError::Url(_) | ConnectError::Lost { .. })) => {
            return Err(refused(error));
        }
        Err(ConnectError::File { .. }) => return Ok(false),
    };
    let keys = store.api_keys().await;
    store.close().await;
    match keys {
        Ok(keys) => Ok(!keys.is_empty()),
        Err(StoreError::Schema(_)) => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("the API keys cannot be read").into()),
    }
}
