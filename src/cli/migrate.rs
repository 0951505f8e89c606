//! `rankduel migrate`: updates the schema of a database.

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::database::{open_store, place};
use super::output::print;
use super::{CommandError, runtime};
use crate::config::StoreArgs;
use rankduel_store::{Database, Distributed, Place, StoreError};

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
    runtime()?.block_on(async {
        let url = &args.store.database_url;
        let place = place(url)?;
        let store = open_store(url).await?;
        let done = update(&*store, &place, args.distribute).await;
        store.close().await;
        done
    })
}

async fn update(
    store: &dyn Database,
    place: &Place,
    distribute: Option<Extension>,
) -> Result<(), CommandError> {
    print(format!("The {} database {place} {}.\n", store.kind(), migrate(store).await?))?;
    if let Some(Extension::Citus) = distribute {
        let Distributed { newly, nodes } = store.distribute().await.map_err(anyhow::Error::from)?;
        let when = if newly { "now" } else { "already" };
        let nodes = if nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") };
        print(format!("Its experiments are {when} distributed over {nodes}.\n"))?;
    }
    Ok(())
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
