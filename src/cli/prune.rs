//! `rankduel prune`: forget the log of an experiment that is decided, below a snapshot.

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;

use super::{CommandError, open_store, runtime};
use crate::access::Actor;
use crate::clock::{Clock as _, SystemClock};
use crate::config::StoreArgs;
use crate::service::retention;
use crate::store::AuditNote;

/// Forget the log of a concluded or archived experiment, up to where its duels have expired
///
/// Standings stay what they are: a snapshot takes the place of the log. What goes for good is every
/// single outcome, so export first. A repeat of an outcome that was pruned is answered as expired
/// instead of as a duplicate; it is not counted. A later version of rankduel that cannot read the
/// snapshot's layout refuses the experiment, and says so.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,

    /// Do it. Without this, only say what would go
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    store: StoreArgs,
}

/// Run the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let name = &arguments.name;
    runtime()?.block_on(async {
        let store = open_store(&arguments.store.database_url).await?;
        store.check().await.context("the database cannot be worked on")?;
        let pruning = retention::prepare(&*store, name, SystemClock.now_ms()).await?;
        let what = format!("{} log entries of `{name}`, up to position {}", pruning.entries, pruning.to);
        if !arguments.yes {
            return Err(CommandError::Usage(format!(
                "this would forget {what}, for good; nothing was changed. Export it first (`rankduel export {name} \
                 --out FILE`), then say --yes"
            )));
        }
        let id = store
            .experiment(name)
            .await
            .context("reading the experiment")?
            .map(|record| record.id)
            .ok_or_else(|| anyhow!("there is no experiment `{name}`"))?;
        let note = AuditNote::of_experiment(&Actor::command_line(), "log-pruned", name, SystemClock.now_ms())
            .changed(None, Some(json!({"entries": pruning.entries, "up_to_position": pruning.to})));
        if !store.prune(id, pruning.to, pruning.format, &note).await.context("pruning")? {
            return Err(anyhow!("experiment `{name}` has changed meanwhile; nothing was forgotten").into());
        }
        store.close().await;
        println!("forgot {what}");
        Ok(())
    })
}
