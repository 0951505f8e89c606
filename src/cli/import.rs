//! `rankduel import`: imports an experiment into a database.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::CommandError;
use super::database::{Access, with_store};
use crate::config::StoreArgs;
use crate::service::transfer::{self, Import};
use rankduel_engine::access::Actor;
use rankduel_engine::clock::{Clock as _, SystemClock};

/// Import an experiment from a file of `rankduel export`
///
/// The file can come from SQLite or PostgreSQL. The command imports the whole experiment or
/// nothing. Repeating an import changes nothing. The imported experiment does not accept feedback
/// for duels that another database has issued.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Import the experiment under another name
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let path = &arguments.file;
    let mut file: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let file = File::open(path)
            .map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))?;
        Box::new(BufReader::new(file))
    };
    with_store(&arguments.store, Access::Creates, async |store| {
        let by = (&Actor::command_line(), SystemClock.now_ms());
        let imported = transfer::import(&**store, &mut *file, arguments.name.as_deref(), Some(by))
            .await
            .with_context(|| format!("{} cannot be imported", path.display()))?;
        match imported {
            Import::New { entries, beside } => {
                eprintln!("imported {entries} log entries");
                if let Some(original) = beside {
                    eprintln!(
                        "its original `{original}` is in this database: both have the same units \
                         in the same arms, so let only one of them issue duels"
                    );
                }
            }
            Import::Same => {
                eprintln!("the experiment already exists and is the same; nothing was changed")
            }
        }
        Ok(())
    })
}
