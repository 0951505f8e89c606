//! `rankduel export`: exports an experiment with its log as JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::database::open_store;
use super::error::CommandError;
use super::runtime::runtime;
use crate::config::StoreArgs;
use crate::service::transfer;

/// Export an experiment with its log as JSON lines, for `rankduel import` and your own tools
///
/// The experiment can be archived. The command reads the log up to its current end and can run
/// beside servers.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,

    /// The file to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    runtime()?.block_on(async {
        let store = open_store(&arguments.store.database_url).await?;
        store.check().await.context("the database cannot be read from")?;
        let written = match &arguments.out {
            None => transfer::export(&*store, &arguments.name, &mut std::io::stdout()).await,
            Some(path) => {
                let file = File::create_new(path)
                    .with_context(|| format!("{} cannot be created", path.display()))?;
                let mut out = BufWriter::new(file);
                match transfer::export(&*store, &arguments.name, &mut out).await {
                    Ok(entries) => {
                        out.flush()
                            .and_then(|()| out.get_ref().sync_all())
                            .context("the file cannot be written")?;
                        Ok(entries)
                    }
                    Err(error) => {
                        // A partial export must not be mistaken for a complete one.
                        let _ = std::fs::remove_file(path);
                        Err(error)
                    }
                }
            }
        };
        let entries =
            written.with_context(|| format!("`{}` cannot be exported", arguments.name))?;
        store.close().await;
        eprintln!("exported `{}`: {entries} log entries", arguments.name);
        Ok(())
    })
}
