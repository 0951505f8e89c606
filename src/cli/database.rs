//! The databases of a command.

use std::sync::Arc;

use super::CommandError;
use crate::store::{ConnectError, DatabaseSet, SharedStore, StoreError, connect, connect_with};

/// Opens the store of these URLs. An invalid URL is a wrong call.
pub(super) async fn open_store(urls: &[String]) -> Result<SharedStore, CommandError> {
    open_store_with(urls, &[]).await
}

/// [`open_store`], with the URLs of the same databases without a pooler.
pub(super) async fn open_store_with(
    urls: &[String],
    direct: &[String],
) -> Result<SharedStore, CommandError> {
    match urls {
        [url] => connect_with(url, direct.first().map(String::as_str)).await.map_err(refused),
        _ => Ok(Arc::new(open_set(urls, direct).await?)),
    }
}

/// Opens several databases.
pub(super) async fn open_set(
    urls: &[String],
    direct: &[String],
) -> Result<DatabaseSet, CommandError> {
    DatabaseSet::open(urls, direct).await.map_err(refused)
}

fn refused(error: ConnectError) -> CommandError {
    match error {
        ConnectError::Url(detail) => CommandError::Usage(format!("--database-url: {detail}")),
        error @ ConnectError::File { .. } => {
            CommandError::Failed(anyhow::Error::new(error).context("the database cannot be opened"))
        }
    }
}

/// Whether one of the databases has API keys. A database that does not exist has none, and is not
/// created.
pub(super) async fn has_api_keys(urls: &[String]) -> Result<bool, CommandError> {
    for url in urls {
        if one_has_api_keys(url).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn one_has_api_keys(url: &str) -> Result<bool, CommandError> {
    let existing = if url.starts_with("sqlite:") && !url.contains('?') {
        format!("{url}?mode=rw")
    } else {
        url.into()
    };
    let store = match connect(&existing).await {
        Ok(store) => store,
        Err(error @ ConnectError::Url(_)) => return Err(refused(error)),
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
