//! `rankduel migrate`: updates the schema of a database.

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::database::open_store;
use super::error::CommandError;
use super::runtime::runtime;
use crate::config::StoreArgs;
use crate::store::{Database, Distributed, StoreError};
use crate::telemetry::logging::{self, LogFormat};

/// Update the schema of a database.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArgs,

    /// Then distribute the experiments over the nodes of a PostgreSQL database with this extension.
    /// Stop the servers first. The database keeps its experiments; repeating the command changes
    /// nothing
    #[arg(long, value_name = "EXTENSION")]
    distribute: Option<Extension>,
}

/// An extension that distributes a PostgreSQL database.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Extension {
    Citus,
}

/// Runs the command.
pub(super) fn run(args: &Arguments) -> Result<(), CommandError> {
    // what a migration waits for is a warning
    logging::init("rankduel=warn", LogFormat::Auto, None)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    runtime()?.block_on(async {
        let urls = args.store.database_urls();
        let store = open_store(&urls).await?;
        let done = update(&*store, urls.len(), args.distribute).await;
        store.close().await;
        done.map_err(CommandError::from)
    })
}

async fn update(
    store: &dyn Database,
    databases: usize,
    distribute: Option<Extension>,
) -> anyhow::Result<()> {
    let which = match databases {
        1 => format!("The {} database", store.kind()),
        many => format!("Each of the {many} databases"),
    };
    println!("{which} {}.", migrate(store, databases > 1).await?);
    if let Some(Extension::Citus) = distribute {
        let Distributed { newly, nodes } = store.distribute().await?;
        let when = if newly { "now" } else { "already" };
        let nodes = if nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") };
        println!("Its experiments are {when} distributed over {nodes}.");
    }
    Ok(())
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
