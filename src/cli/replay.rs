//! `rankduel replay`: an experiment's log under another policy.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};

use super::{CommandError, open_store, runtime};
use crate::config::StoreArgs;
use crate::engine::experiment_spec::ExperimentSpec;
use crate::service::reports::replay::{Replay, replay};
use crate::service::transfer;
use crate::store::SharedStore;
use dueling_bandits::PolicySpec;

/// Fold an experiment's log under another policy: what its state would be, what it would choose
/// next, what it would have cost
///
/// From a database, or from a file that `rankduel export` wrote. Nothing is changed. The cost is
/// estimated by runs of the policy that are answered with the log's own answers, each used once;
/// where those do not reach far enough, no number is given but the reason. Under the experiment's
/// own policy the state is the one that is served.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment; of a file the one that is in it
    #[arg(value_name = "NAME", required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,

    /// A policy: KIND or KIND:name=value,name=value (repeat for several) [default: the experiment's
    /// own]
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,

    /// Read a file that `rankduel export` wrote, not the database
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// An array, one object a policy
    Json,
}

/// Name of an experiment that was read from a file, in a database of its own.
const FROM_FILE: &str = "replayed";

/// Run the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let policies = arguments
        .policies
        .iter()
        .map(|text| {
            PolicySpec::from_text(text)
                .map_err(|error| CommandError::Usage(format!("--policy {text}: {error}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let replays = runtime()?.block_on(async {
        match (&arguments.file, &arguments.name) {
            (Some(path), _) => {
                let file = File::open(path).map_err(|error| {
                    CommandError::Usage(format!("--file {}: {error}", path.display()))
                })?;
                let folder = tempfile::tempdir().context("no temporary folder for the log")?;
                let store =
                    open_store(&format!("sqlite://{}", folder.path().join("replay.db").display()))
                        .await?;
                store.migrate().await.context("a database for the log cannot be made")?;
                transfer::import(&*store, &mut BufReader::new(file), Some(FROM_FILE), None)
                    .await
                    .with_context(|| format!("reading {}", path.display()))?;
                all(&store, FROM_FILE, policies).await
            }
            (None, Some(name)) => {
                let store = open_store(&arguments.store.database_url).await?;
                store.check().await.context("the database cannot be read from")?;
                all(&store, name, policies).await
            }
            (None, None) => {
                Err(CommandError::Usage("name an experiment, or a file with --file".into()))
            }
        }
    })?;
    let text = match arguments.format {
        Format::Table => replays.iter().map(paragraph).collect::<Vec<_>>().join("\n"),
        Format::Json => serde_json::to_string_pretty(&replays).context("writing JSON")? + "\n",
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the result")?;
    Ok(())
}

async fn all(
    store: &SharedStore,
    name: &str,
    policies: Vec<PolicySpec>,
) -> Result<Vec<Replay>, CommandError> {
    let record = store.experiment(name).await.context("reading the experiment")?;
    let record = record.ok_or_else(|| anyhow!("there is no experiment `{name}`"))?;
    let spec =
        ExperimentSpec::read(&record.spec).map_err(|why| anyhow!("experiment `{name}`: {why}"))?;
    let policies = if policies.is_empty() { vec![spec.policy.clone()] } else { policies };
    for policy in &policies {
        policy
            .validate(spec.rankers.len())
            .map_err(|error| CommandError::Usage(format!("--policy {}: {error}", policy.kind())))?;
    }
    let mut replays = Vec::new();
    for policy in policies {
        let replayed = replay(&**store, &record, &spec, policy, record.head, None).await;
        replays.push(replayed.map_err(anyhow::Error::new)?);
    }
    store.close().await;
    Ok(replays)
}

fn paragraph(replay: &Replay) -> String {
    let mut text = format!(
        "{}{}\n  log position {}, {} steps, state {}\n  leaders {}, champion {}\n",
        replay.policy.kind(),
        if replay.own_policy { " (the experiment's own)" } else { "" },
        replay.position,
        replay.steps,
        replay.state,
        replay.leaders.join(", "),
        replay.champion
    );
    let next: Vec<String> = replay
        .next
        .iter()
        .map(|next| format!("{} – {} ({:.0} %)", next.first, next.second, 100.0 * next.share))
        .collect();
    // writing to a string does not fail
    let _ = writeln!(text, "  next: {}", next.join(", "));
    let _ = match (&replay.regret, &replay.regret_reason) {
        (Some(regret), _) => writeln!(
            text,
            "  Copeland regret of the first {} steps: {:.1} ({:.1} to {:.1}; {:.1} between its {} runs); as it was {:.1} ({:.1} \
             to {:.1}); uniform pairs {:.1}",
            regret.steps,
            regret.replayed.mean,
            regret.replayed.low,
            regret.replayed.high,
            regret.deviation,
            regret.runs,
            regret.logged.mean,
            regret.logged.low,
            regret.logged.high,
            regret.uniform
        ),
        (None, reason) => {
            writeln!(
                text,
                "  Copeland regret: not known: {}",
                reason.as_deref().unwrap_or_default()
            )
        }
    };
    text
}
