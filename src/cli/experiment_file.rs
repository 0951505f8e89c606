//! `rankduel export` and `pages`: what they write of one experiment goes to a file or to standard
//! output.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::CommandError;
use super::database::{Access, with_store};
use super::output::Output;
use crate::config::StoreArgs;
use crate::service::transfer::{self, TableFormat, write_pages};
use rankduel_store::Store;

/// Write the export of an experiment.
pub(super) fn export(file: &ExperimentFile) -> Result<(), CommandError> {
    let entries =
        file.write("export", async |store, name, out| transfer::export(store, name, out).await)?;
    eprintln!("exported `{}`: {entries} log entries", file.name);
    Ok(())
}

/// Write a table of the answered pages of an experiment, one row a page
///
/// A row has the two rankers as they were shown, the outcome and the winner, whether feedback was
/// an outcome or clicks. The experiment can be archived. The command reads the log up to its
/// current end and can run beside servers.
#[derive(Debug, Args)]
pub(super) struct Pages {
    #[command(flatten)]
    file: ExperimentFile,

    /// How the table is written
    #[arg(long, value_enum, default_value = "csv")]
    format: TableFormat,

    /// Only pages answered after this position of the log, such as the last `position` of a table
    /// that a job adds to
    #[arg(long, value_name = "POSITION", default_value_t = 0, hide_default_value = true)]
    after: u64,
}

impl Pages {
    pub(super) fn run(&self) -> Result<(), CommandError> {
        let Self { file, format, after } = self;
        let (rows, pruned_to) = file.write("table", async |store, name, out| {
            let rows = write_pages(store, name, *format, *after, out).await?;
            let record = store.experiment(name).await.context("the experiment cannot be read")?;
            Ok((rows, record.map_or(0, |record| record.pruned_to)))
        })?;
        let pruned = match pruned_to > *after {
            true => format!("; the log up to position {pruned_to} was pruned, and is not in it"),
            false => String::new(),
        };
        eprintln!("wrote the answered pages of `{}`: {rows} rows{pruned}", file.name);
        Ok(())
    }
}

/// The arguments of each of these commands.
#[derive(Debug, Args)]
pub(super) struct ExperimentFile {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,

    /// The file to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

impl ExperimentFile {
    /// Open the database and write the file. `what` names its content in an error.
    fn write<T>(
        &self,
        what: &str,
        write: impl AsyncFnOnce(&dyn Store, &str, &mut (dyn Write + Send)) -> anyhow::Result<T>,
    ) -> Result<T, CommandError> {
        let name = &self.name;
        with_store(&self.store, Access::Reads, async |store| {
            let mut output = Output::default();
            let written = match &self.out {
                None => write(&**store, name, &mut output).await,
                Some(path) => write_new(path, async |out| write(&**store, name, out).await).await,
            };
            let written = written.with_context(|| format!("no {what} of `{name}` was written"));
            output.checked(written)
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
