//! `rankduel prune`: deletes the log of a concluded experiment below a snapshot.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;

use super::database::open_store;
use super::output::print;
use super::{CommandError, runtime};
use crate::config::StoreArgs;
use crate::service::retention;
use rankduel_engine::access::Actor;
use rankduel_engine::clock::{Clock as _, SystemClock};
use rankduel_store::AuditNote;

/// Delete the log of a concluded or archived experiment below its first unexpired duel
///
/// The standings do not change: a snapshot replaces the log. The single outcomes are lost, so
/// export the experiment first. If a caller repeats a pruned outcome, the answer is `expired`
/// instead of `duplicate`; the outcome does not count. A later version of rankduel that cannot read
/// the layout of the snapshot refuses the experiment with an error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,

    /// Delete the entries. Without this option, only report how many there are
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let name = &arguments.name;
    runtime()?.block_on(async {
        let store = open_store(&arguments.store.database_url).await?;
        store.check().await.context("the database cannot be used")?;
        let pruning = retention::prepare(&*store, name, SystemClock.now_ms()).await?;
        let what = format!("{} log entries of `{name}`, up to position {}", pruning.entries, pruning.to);
        if !arguments.yes {
            return Err(CommandError::Usage(format!(
                "this would permanently forget {what}; nothing was changed. Export the experiment first (`rankduel \
                 export {name} --out FILE`), then repeat the command with --yes"
            )));
        }
        let id = store
            .experiment(name)
            .await
            .context("the experiment cannot be read")?
            .map(|record| record.id)
            .ok_or_else(|| anyhow!("there is no experiment `{name}`"))?;
        let note = AuditNote::of_experiment(&Actor::command_line(), "log-pruned", name, SystemClock.now_ms())
            .changed(None, Some(json!({"entries": pruning.entries, "up_to_position": pruning.to})));
        if !store.prune(id, pruning.to, pruning.format, &note).await.context("the log cannot be pruned")? {
            return Err(anyhow!("experiment `{name}` has changed in the meantime; nothing was forgotten").into());
        }
        store.close().await;
        print(format!("forgot {what}\n"))
    })
}
