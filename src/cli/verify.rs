//! `rankduel verify`: whether a database holds what it should.

use std::io::Write as _;

use anyhow::{Context as _, anyhow};
use clap::Args;

use super::{CommandError, open_store, runtime};
use crate::config::StoreArgs;
use crate::service::verify;
use crate::store::SharedStore;

/// Experiments named at a time.
const PAGE: u32 = 1000;

/// Read everything in a database and say what is wrong where: exit code 1 if anything is
///
/// Of each experiment: its record, its log (positions without a gap, nonces unique, entries that
/// can be folded, an end where it should be), its changes, and its snapshots against the fold. Of
/// SQLite also what it finds wrong with its file. Nothing is changed, and servers may go on
/// meanwhile.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only these experiments
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

/// Run the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    runtime()?.block_on(async {
        let store = open_store(&arguments.store.database_url).await?;
        let wrong = verify(&store, &arguments.names).await?;
        store.close().await;
        match wrong {
            0 => Ok(()),
            1 => Err(anyhow!("one thing is wrong").into()),
            many => Err(anyhow!("{many} things are wrong").into()),
        }
    })
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("writing the result")
}

/// How many things are wrong.
async fn verify(store: &SharedStore, names: &[String]) -> anyhow::Result<usize> {
    store.check().await.context("the database cannot be verified")?;
    let mut wrong = 0;
    for what in store.integrity().await.context("checking the file")? {
        wrong += 1;
        say(&format!("WRONG  database: {what}"))?;
    }
    match store.signing_keys().await {
        Ok(keys) if keys.is_empty() => {
            say("database: no signing key yet; the first server makes one")?
        }
        Ok(keys) => say(&format!("database: {} signing key(s)", keys.len()))?,
        Err(error) => {
            wrong += 1;
            say(&format!("WRONG  database: signing keys: {error}"))?;
        }
    }
    let mut after = String::new();
    loop {
        let page = if names.is_empty() {
            store.names(&after, PAGE).await.context("listing the experiments")?
        } else {
            names.to_vec()
        };
        for name in &page {
            let findings = verify::verify(&**store, name)
                .await
                .with_context(|| format!("reading `{name}`"))?;
            for what in &findings.wrong {
                say(&format!("WRONG  {name}: {what}"))?;
            }
            for what in &findings.remarks {
                say(&format!("{name}: {what}"))?;
            }
            if findings.wrong.is_empty() {
                say(&format!(
                    "{name}: {} log entries, {} snapshot(s), all well",
                    findings.entries, findings.snapshots
                ))?;
            }
            wrong += findings.wrong.len();
        }
        match page.last() {
            Some(last) if names.is_empty() => after = last.clone(),
            _ => return Ok(wrong),
        }
    }
}
