//! `rankduel import`: what `rankduel export` wrote, into this database.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{CommandError, open_store, runtime};
use crate::access::Actor;
use crate::clock::{Clock as _, SystemClock};
use crate::config::StoreArgs;
use crate::service::transfer::{self, Import};

/// Bring in an experiment that `rankduel export` wrote, into either database
///
/// All of it or nothing. Importing the same again changes nothing. Duels that are out are not
/// answered here: they belong to the database that issued them.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Import under another name
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Run the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let path = &arguments.file;
    let mut file: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let file = File::open(path)
            .map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))?;
        Box::new(BufReader::new(file))
    };
    runtime()?.block_on(async {
        let store = open_store(&arguments.store.database_url).await?;
        store.check().await.context("the database cannot be written to")?;
        let by = (&Actor::command_line(), SystemClock.now_ms());
        let imported = transfer::import(&*store, &mut *file, arguments.name.as_deref(), Some(by))
            .await
            .with_context(|| format!("importing {}", path.display()))?;
        store.close().await;
        match imported {
            Import::New { entries } => eprintln!("imported {entries} log entries"),
            Import::Same => eprintln!("it is there already, the same; nothing was changed"),
        }
        Ok(())
    })
}
