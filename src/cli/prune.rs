//! `rankduel prune`: deletes the log of a concluded experiment below a snapshot.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;

use super::CommandError;
use super::database::{Access, with_store};
use super::output::print;
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
    with_store(&arguments.store, Access::Changes, async |store| {
        let pruning = retention::prepare(&**store, name, SystemClock.now_ms()).await?;
        let (entries, to) = (pruning.entries, pruning.to);
        let what = format!("{entries} log entries of `{name}`, up to position {to}");
        if !arguments.yes {
            return Err(CommandError::Usage(format!(
                "this would permanently forget {what}; nothing was changed. Export the experiment first \
                 (`rankduel export {name} --out FILE`), then repeat the command with --yes"
            )));
        }
        let record = store.experiment(name).await.context("the experiment cannot be read")?;
        let id = record.ok_or_else(|| anyhow!("there is no experiment `{name}`"))?.id;
        let (by, now) = (Actor::command_line(), SystemClock.now_ms());
        let note = AuditNote::of_experiment(&by, "log-pruned", name, now)
            .changed(None, Some(json!({"entries": entries, "up_to_position": to})));
        let pruned = store.prune(id, to, pruning.format, &note).await;
        if !pruned.context("the log cannot be pruned")? {
            let why = "has changed in the meantime; nothing was forgotten";
            return Err(anyhow!("experiment `{name}` {why}").into());
        }
        print(format!("forgot {what}\n"))
    })
}
