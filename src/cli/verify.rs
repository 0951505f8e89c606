//! `rankduel verify`: checks the contents of a database.

use anyhow::{Context as _, anyhow};
use clap::Args;

use super::CommandError;
use super::database::{Access, with_store};
use super::output::print;
use crate::config::StoreArgs;
use crate::service::verify;
use rankduel_store::SharedStore;

/// Number of experiments that are listed at a time.
const NAMES_AT_A_TIME: u32 = 1000;

/// Check everything in a database and report each error: exit code 1 if there are any
///
/// For each experiment, the command checks the record, the log (positions without gaps, unique
/// nonces, entries that can be folded, the recorded end), the changes, and the snapshots against
/// the fold. With SQLite, it also runs the integrity check of the file. The command changes nothing
/// and can run beside servers.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only these experiments
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    with_store(&arguments.store, Access::Reads, async |store| {
        match verify(store, &arguments.names).await? {
            0 => Ok(()),
            1 => Err(anyhow!("1 thing is wrong").into()),
            many => Err(anyhow!("{many} things are wrong").into()),
        }
    })
}

/// The check goes on without a reader: its result is the exit code.
fn print_line(line: &str) -> anyhow::Result<()> {
    match print(format!("{line}\n")) {
        Ok(()) | Err(CommandError::ReaderGone) => Ok(()),
        Err(error) => Err(anyhow!("{error}")),
    }
}

/// Check the whole database, or these experiments. Returns the number of errors.
async fn verify(store: &SharedStore, names: &[String]) -> anyhow::Result<usize> {
    let mut wrong = 0;
    for what in store.integrity().await.context("the file cannot be checked")? {
        wrong += 1;
        print_line(&format!("WRONG  database: {what}"))?;
    }
    match store.signing_keys().await {
        Ok(keys) if keys.is_empty() => {
            print_line("database: no signing key yet; the first server creates one")?
        }
        Ok(keys) => print_line(&format!("database: {} signing key(s)", keys.len()))?,
        Err(error) => {
            wrong += 1;
            print_line(&format!("WRONG  database: signing keys: {error}"))?;
        }
    }
    let mut after = String::new();
    loop {
        let chunk = if names.is_empty() {
            store
                .names(&after, NAMES_AT_A_TIME)
                .await
                .context("the experiments cannot be listed")?
        } else {
            names.to_vec()
        };
        for name in &chunk {
            wrong += verify_experiment(store, name).await?;
        }
        match chunk.last() {
            Some(last) if names.is_empty() => after = last.clone(),
            _ => return Ok(wrong),
        }
    }
}

/// Check one experiment. Returns the number of errors.
async fn verify_experiment(store: &SharedStore, name: &str) -> anyhow::Result<usize> {
    let findings =
        verify::verify(&**store, name).await.with_context(|| format!("`{name}` cannot be read"))?;
    for what in &findings.wrong {
        print_line(&format!("WRONG  {name}: {what}"))?;
    }
    for what in &findings.remarks {
        print_line(&format!("{name}: {what}"))?;
    }
    if findings.wrong.is_empty() {
        print_line(&format!(
            "{name}: {} log entries, {} snapshot(s), all well",
            findings.entries, findings.snapshots
        ))?;
    }
    Ok(findings.wrong.len())
}
