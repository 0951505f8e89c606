//! `rankduel replay`: folds the log of an experiment with another policy.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;

use super::database::{Access, open_store, with_store};
use super::output::{Format, print, print_json};
use super::{CommandError, runtime};
use crate::config::StoreArgs;
use crate::service::reports::replay::{Replay, ReplayedLog, replay_log};
use crate::service::transfer;
use dueling_bandits::PolicySpec;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_store::SharedStore;

/// Replay the log of an experiment with another policy: its state, its next duels and its regret
///
/// The log comes from a database or from a file of `rankduel export`. The command changes nothing.
/// It estimates the regret by runs of the policy that use each answer of the log once. If the
/// answers are not sufficient, it reports the reason instead of a number. With the experiment's own
/// policy, the state equals the state of the server.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment; not needed with --file
    #[arg(value_name = "NAME", required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,

    /// A policy: KIND or KIND:name=value,name=value. Repeat the option for several policies
    /// [default: the experiment's own]
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,

    /// Read a file of `rankduel export` instead of the database
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    #[command(flatten)]
    store: StoreArgs,
}

/// The name of an experiment from a file, in its temporary database.
const FROM_FILE: &str = "replayed";

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let policies = arguments
        .policies
        .iter()
        .map(|text| {
            PolicySpec::from_text(text)
                .map_err(|error| CommandError::Usage(format!("--policy {text}: {error}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let replays = match (&arguments.file, &arguments.name) {
        (Some(path), _) => runtime()?.block_on(of_file(path, policies))?,
        (None, Some(name)) => with_store(&arguments.store, Access::Reads, async |store| {
            all(store, name, policies).await
        })?,
        (None, None) => {
            let why = "the call needs the name of an experiment, or --file";
            return Err(CommandError::Usage(why.into()));
        }
    };
    match arguments.format {
        Format::Table => print(replays.iter().map(paragraph).collect::<Vec<_>>().join("\n")),
        Format::Json => print_json(&replays),
    }
}

async fn of_file(path: &Path, policies: Vec<PolicySpec>) -> Result<Vec<Replay>, CommandError> {
    let file = File::open(path)
        .map_err(|error| CommandError::Usage(format!("--file {}: {error}", path.display())))?;
    let folder = tempfile::tempdir().context("a temporary folder for the log cannot be created")?;
    let url = format!("sqlite://{}", folder.path().join("replay.db").display());
    let store = open_store(&url).await?;
    store.migrate().await.context("a database for the log cannot be created")?;
    transfer::import(&*store, &mut BufReader::new(file), Some(FROM_FILE), None)
        .await
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let replays = all(&store, FROM_FILE, policies).await;
    store.close().await;
    replays
}

async fn all(
    store: &SharedStore,
    name: &str,
    policies: Vec<PolicySpec>,
) -> Result<Vec<Replay>, CommandError> {
    let record = store.experiment(name).await.context("the experiment cannot be read")?;
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
        let log = ReplayedLog { record: &record, spec: &spec, head: record.head };
        let replayed = replay_log(&**store, log, policy, None, None).await;
        replays.push(replayed.map_err(anyhow::Error::new)?);
    }
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
    // Writing to a string does not fail.
    let _ = writeln!(text, "  next: {}", next.join(", "));
    let _ = match (&replay.regret, &replay.regret_reason) {
        (Some(regret), _) => writeln!(
            text,
            "  Copeland regret of the first {} steps: {:.1} ({:.1} to {:.1}; deviation {:.1} between {} runs); of the log \
             {:.1} ({:.1} to {:.1}); difference {:.1} ({:.1} to {:.1}), cheaper with probability {:.2}; of uniform pairs {:.1}",
            regret.steps,
            regret.replayed.mean,
            regret.replayed.low,
            regret.replayed.high,
            regret.deviation,
            regret.runs,
            regret.logged.mean,
            regret.logged.low,
            regret.logged.high,
            regret.difference.mean,
            regret.difference.low,
            regret.difference.high,
            regret.cheaper,
            regret.uniform
        ),
        (None, reason) => {
            writeln!(text, "  Copeland regret: unknown: {}", reason.as_deref().unwrap_or_default())
        }
    };
    text
}
