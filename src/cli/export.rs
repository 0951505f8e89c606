//! `rankduel export`: an experiment with its log, as JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{CommandError, open_store, runtime};
use crate::config::StoreArgs;
use crate::service::transfer;

/// Write an experiment with its log as JSON lines, for `rankduel import` and for your own tools
///
/// Archived experiments too. The log is read up to where it ends now; servers go on meanwhile.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,

    /// File to write, which must not be there yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Run the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    runtime()?.block_on(async {
        let store = open_store(&arguments.store.database_url).await?;
        store.check().await.context("the database cannot be read from")?;
        let written = match &arguments.out {
            None => transfer::export(&*store, &arguments.name, &mut std::io::stdout()).await,
            Some(path) => {
                let file = File::create_new(path)
                    .with_context(|| format!("{} cannot be made", path.display()))?;
                let mut out = BufWriter::new(file);
                match transfer::export(&*store, &arguments.name, &mut out).await {
                    Ok(entries) => {
                        out.flush()
                            .and_then(|()| out.get_ref().sync_all())
                            .context("writing the file")?;
                        Ok(entries)
                    }
                    Err(error) => {
                        // half an export must not be taken for one
                        let _ = std::fs::remove_file(path);
                        Err(error)
                    }
                }
            }
        };
        let entries = written.with_context(|| format!("exporting `{}`", arguments.name))?;
        store.close().await;
        eprintln!("exported `{}`: {entries} log entries", arguments.name);
        Ok(())
    })
}
