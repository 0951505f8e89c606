//! The file that a command makes of one experiment, or standard output.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::database::open_store;
use super::error::CommandError;
use super::runtime::runtime;
use crate::config::StoreArgs;
use crate::store::Store;

/// The arguments of such a command.
#[derive(Debug, Args)]
pub(super) struct ExperimentFile {
    /// The experiment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The file to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

impl ExperimentFile {
    /// Open the database and write the file. `what` is made of the experiment, for an error.
    pub fn write<T>(
        &self,
        what: &str,
        write: impl AsyncFnOnce(&dyn Store, &str, &mut (dyn Write + Send)) -> anyhow::Result<T>,
    ) -> Result<T, CommandError> {
        let name = &self.name;
        runtime()?.block_on(async {
            let store = open_store(&self.store.database_url).await?;
            store.check().await.context("the database cannot be read from")?;
            let written = match &self.out {
                None => write(&*store, name, &mut std::io::stdout()).await,
                Some(path) => write_new(path, async |out| write(&*store, name, out).await).await,
            };
            let written = written.with_context(|| format!("no {what} of `{name}` was written"))?;
            store.close().await;
            Ok(written)
        })
    }
}

/// Write a new file. A file that exists is not overwritten, and one that could not be written whole
/// is removed: nobody should mistake it for a complete one.
async fn write_new<T>(
    path: &Path,
    write: impl AsyncFnOnce(&mut (dyn Write + Send)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let file =
        File::create_new(path).with_context(|| format!("{} cannot be created", path.display()))?;
    let mut out = BufWriter::new(file);
    let written = match write(&mut out).await {
        Ok(written) => out
            .flush()
            .and_then(|()| out.get_ref().sync_all())
            .context("the file cannot be written")
            .map(|()| written),
        failed => failed,
    };
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}
