//! `rankduel keys`: manages the API keys of callers.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};

use super::CommandError;
use super::database::{Access, with_store};
use super::output::{is_null, print};
use crate::config::StoreArgs;
use rankduel_engine::access::{
    self, Actor, KeyChangeError, KeyRequest, KeyRotation, KeyState, NewKey,
    OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX, Scope, Scopes,
};
use rankduel_engine::clock::{Clock as _, SystemClock, rfc3339};
use rankduel_engine::experiment_spec::name_error;
use rankduel_store::{ApiKeyRecord, SharedStore};

/// Manage the API keys of callers: create, list, rotate, revoke
///
/// A key is shown once, when it is created; the database stores only its digest. Servers accept a
/// new key at once. They read the keys every ten seconds, so they may accept a revoked key for that
/// long. As soon as there is one key, every caller needs a key. Every change is in the audit log.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a key and print it on standard output
    Create {
        /// A name for people, such as `search backend`
        #[arg(value_name = "NAME")]
        name: String,
        /// A permission of the key; can be repeated. decide: request duels. feedback: send
        /// feedback. read: read experiments and results, metrics and the dashboard. admin:
        /// everything
        #[arg(long = "scope", value_name = "SCOPE", required = true)]
        scopes: Vec<Scope>,
        /// An experiment that the key is limited to; can be repeated [default: all experiments]
        #[arg(long = "experiment", value_name = "NAME")]
        experiments: Vec<String>,
        /// Days until the key expires [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List the keys
    List(StoreArgs),
    /// Replace a key by a new one with the same permissions; the old key expires after an overlap
    Rotate {
        /// The id of the key, from `list`
        #[arg(value_name = "ID")]
        id: String,
        /// Seconds during which both keys are valid, for callers to switch
        #[arg(long, value_name = "SECONDS", default_value_t = OVERLAP_SECONDS_DEFAULT, value_parser = clap::value_parser!(u32).range(0..=i64::from(OVERLAP_SECONDS_MAX)))]
        overlap_seconds: u32,
        /// Days until the new key expires [default: never]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Revoke a key permanently
    Revoke {
        /// The id of the key, from `list`
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let (Command::Create { store: args, .. }
    | Command::List(args)
    | Command::Rotate { store: args, .. }
    | Command::Revoke { store: args, .. }) = &arguments.command;
    check(&arguments.command)?;
    let access = match arguments.command {
        Command::List(_) => Access::Reads,
        _ => Access::Changes,
    };
    with_store(args, access, async |store| match &arguments.command {
        Command::Create { name, scopes, experiments, expires_in_days, .. } => {
            let request = KeyRequest {
                name: name.clone(),
                scopes: scopes.iter().copied().collect(),
                experiments: (!experiments.is_empty()).then(|| experiments.clone()),
                expires_in_days: *expires_in_days,
            };
            warn_of_unknown(store, experiments).await?;
            create(store, &request).await
        }
        Command::List(_) => print(list(store).await?),
        Command::Rotate { id, overlap_seconds, expires_in_days, .. } => {
            let (overlap_seconds, expires_in_days) = (*overlap_seconds, *expires_in_days);
            rotate(store, id, &KeyRotation { overlap_seconds, expires_in_days }).await
        }
        Command::Revoke { id, .. } => print(revoke(store, id).await?),
    })
}

/// Validates the call before the database is opened.
fn check(command: &Command) -> Result<(), CommandError> {
    let Command::Create { name, experiments, .. } = command else { return Ok(()) };
    if let Some(error) = KeyRequest::name_error(name) {
        return Err(CommandError::Usage(error));
    }
    match experiments.iter().find_map(|experiment| name_error(experiment)) {
        Some(error) => Err(CommandError::Usage(format!("--experiment: {}", error.detail))),
        None => Ok(()),
    }
}

/// Say which experiments do not exist: a name may be misspelt, or the experiment comes later.
async fn warn_of_unknown(store: &SharedStore, experiments: &[String]) -> anyhow::Result<()> {
    for name in experiments {
        let found = store.experiment(name).await.context("the experiments cannot be read")?;
        if found.is_none() {
            eprintln!("there is no experiment `{name}` yet; the key is for one of that name");
        }
    }
    Ok(())
}

/// Print the key, alone so that it can be piped, before it is added: a key that nobody has read
/// should not exist. A standard output that is closed is `/dev/null` by now.
fn show(key: &NewKey, _: &ApiKeyRecord) -> Result<(), CommandError> {
    if is_null().context("the key cannot be shown")? {
        let why = "standard output is closed or /dev/null: nobody would read the key";
        return Err(anyhow!(why).into());
    }
    print(format!("{}\n", key.text))
}

/// Describe the key on standard error.
fn describe(record: &ApiKeyRecord) {
    eprintln!(
        "key {} of {:?}: {}; the key is shown this once",
        record.id,
        record.name,
        [
            Scopes::from_names(&record.scopes).to_string(),
            match &record.experiments {
                Some(names) => format!("for {}", names.join(", ")),
                None => "for all experiments".into(),
            },
            match record.expires_at {
                Some(at) => format!("until {}", rfc3339(at)),
                None => "without expiry".into(),
            },
        ]
        .join(", ")
    );
}

async fn create(store: &SharedStore, request: &KeyRequest) -> Result<(), CommandError> {
    let (now, by) = (SystemClock.now_ms(), Actor::command_line());
    let (_, record) = access::create_key(&**store, request, &by, now, show).await?;
    describe(&record);
    Ok(())
}

async fn rotate(store: &SharedStore, id: &str, rotation: &KeyRotation) -> Result<(), CommandError> {
    let (now, by) = (SystemClock.now_ms(), Actor::command_line());
    let (_, record, old) = access::rotate_key(&**store, id, rotation, &by, now, show).await?;
    if let Some(at) = old.expires_at {
        eprintln!("key {id} is valid until {}", rfc3339(at));
    }
    describe(&record);
    Ok(())
}

impl From<KeyChangeError> for CommandError {
    fn from(error: KeyChangeError) -> Self {
        explained(error, "the key cannot be added").into()
    }
}

async fn revoke(store: &SharedStore, id: &str) -> anyhow::Result<String> {
    let (now, by) = (SystemClock.now_ms(), Actor::command_line());
    let revoked = access::revoke_key(&**store, id, &by, now).await;
    if revoked.map_err(|error| explained(error, "the key cannot be revoked"))? {
        Ok(format!("key {id} is revoked; every server refuses it within ten seconds\n"))
    } else {
        Ok(format!("key {id} was revoked before\n"))
    }
}

/// The error, with the command that helps.
fn explained(error: KeyChangeError, what: &'static str) -> anyhow::Error {
    match error {
        KeyChangeError::Unknown(_) => anyhow!("{error}; see `rankduel keys list`"),
        KeyChangeError::Ended(_) => {
            anyhow!("{error}; create a new one with `rankduel keys create`")
        }
        error => anyhow::Error::new(error).context(what),
    }
}

async fn list(store: &SharedStore) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let mut keys = store.api_keys().await.context("the keys cannot be read")?;
    if keys.is_empty() {
        return Ok(
            "there is no key in the database; the keys of RANKDUEL_API_KEYS are not listed\n"
                .into(),
        );
    }
    keys.sort_by_key(|key| key.created_at);
    let time = |at: Option<i64>, none: &str| {
        at.map_or_else(|| none.to_owned(), |at| rfc3339(at - at.rem_euclid(1000)))
    };
    let mut text = format!(
        "{:<8}  {:<7}  {:<27}  {:<20}  {:<20}  {:<20}  {}\n",
        "id", "status", "scopes", "created", "expires", "last used", "name, experiments"
    );
    for key in &keys {
        let experiments = key
            .experiments
            .as_ref()
            .map_or(String::new(), |names| format!(", for {}", names.join(" ")));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<8}  {:<7}  {:<27}  {:<20}  {:<20}  {:<20}  {:?}{experiments}",
            key.id,
            KeyState::of(key, now).name(),
            Scopes::from_names(&key.scopes).to_string(),
            time(Some(key.created_at), ""),
            time(key.expires_at, "never"),
            time(key.last_used_at, "never"),
            // a mark of the writing direction is named, as it would turn the line
            key.name,
        );
    }
    Ok(text)
}
