//! `rankduel keys`: the API keys that callers present.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{CommandError, open_store, runtime};
use crate::access::{Actor, NewKey, Scope, Scopes};
use crate::clock::{Clock as _, SystemClock, rfc3339};
use crate::config::StoreArgs;
use crate::engine::experiment_spec::name_error;
use crate::store::{ApiKeyRecord, AuditNote, SharedStore};

const DAY_MS: i64 = 24 * 3600 * 1000;
/// Most characters of a key's name.
const NAME_MAX: usize = 100;

/// The API keys that callers present: make, list, rotate, revoke
///
/// A key is shown once, when it is made; the database holds only its digest. Servers take a new key
/// at once and read the keys every ten seconds: so long may a revoked one still be accepted. From
/// the first key on, a server asks every caller for one. Every act here is in the audit log.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key, and print it on standard output
    Create {
        /// What people call it, such as `search backend`
        #[arg(value_name = "NAME")]
        name: String,
        /// What it may do; may be repeated. decide: ask for duels. feedback: send it. read:
        /// experiments and results, metrics and the dashboard. admin: everything
        #[arg(long = "scope", value_name = "SCOPE", required = true)]
        scopes: Vec<Scope>,
        /// The experiment that it is for; may be repeated; all experiments unless given
        #[arg(long = "experiment", value_name = "NAME")]
        experiments: Vec<String>,
        /// Days after which it is refused; never unless given
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Say which keys there are
    List(StoreArgs),
    /// Make a key that may do the same, and let the given one end a while later
    Rotate {
        /// The key, as `list` names it
        #[arg(value_name = "ID")]
        id: String,
        /// Seconds that both are good, for callers to change over
        #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = clap::value_parser!(u32).range(0..=31_536_000))]
        overlap_seconds: u32,
        /// Days after which the new one is refused; never unless given
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Refuse a key from now on, for good
    Revoke {
        /// The key, as `list` names it
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Run the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let (Command::Create { store: args, .. }
    | Command::List(args)
    | Command::Rotate { store: args, .. }
    | Command::Revoke { store: args, .. }) = &arguments.command;
    check(&arguments.command)?;
    runtime()?.block_on(async {
        let store = open_store(&args.database_url).await?;
        store.check().await.context("the database cannot be worked on")?;
        let text = match &arguments.command {
            Command::Create { name, scopes, experiments, expires_in_days, .. } => {
                let wanted = Wanted {
                    name: name.trim(),
                    scopes,
                    experiments: (!experiments.is_empty()).then_some(experiments),
                    expires_in_days: *expires_in_days,
                };
                create(&store, &wanted).await
            }
            Command::List(_) => list(&store).await,
            Command::Rotate { id, overlap_seconds, expires_in_days, .. } => {
                rotate(&store, id, *overlap_seconds, *expires_in_days).await
            }
            Command::Revoke { id, .. } => revoke(&store, id).await,
        }?;
        store.close().await;
        std::io::stdout().write_all(text.as_bytes()).context("writing the result")?;
        Ok(())
    })
}

/// What is wrong with the call, before anything is opened.
fn check(command: &Command) -> Result<(), CommandError> {
    let Command::Create { name, experiments, .. } = command else { return Ok(()) };
    let name = name.trim();
    if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(char::is_control) {
        return Err(CommandError::Usage(format!(
            "the name of a key has 1 to {NAME_MAX} characters and none that cannot be seen"
        )));
    }
    match experiments.iter().find_map(|experiment| name_error(experiment)) {
        Some(error) => Err(CommandError::Usage(format!("--experiment: {}", error.detail))),
        None => Ok(()),
    }
}

struct Wanted<'a> {
    name: &'a str,
    scopes: &'a [Scope],
    experiments: Option<&'a Vec<String>>,
    expires_in_days: Option<u32>,
}

/// A new key and its record.
fn make(wanted: &Wanted<'_>, now: i64) -> anyhow::Result<(NewKey, ApiKeyRecord)> {
    let key = NewKey::generate().context("the system gives no randomness")?;
    let record = ApiKeyRecord {
        id: key.id.as_str().to_owned(),
        digest: key.digest,
        name: wanted.name.to_owned(),
        scopes: wanted.scopes.iter().copied().collect::<Scopes>().to_string(),
        experiments: wanted.experiments.cloned(),
        replaces: None,
        created_at: now,
        expires_at: wanted.expires_in_days.map(|days| now + i64::from(days) * DAY_MS),
        revoked_at: None,
        last_used_at: None,
    };
    Ok((key, record))
}

/// What the audit log says of a key.
fn said(record: &ApiKeyRecord) -> Value {
    json!({
        "name": record.name,
        "scopes": Scopes::from_names(&record.scopes).iter().collect::<Vec<_>>(),
        "experiments": record.experiments,
        "expires_at": record.expires_at.map(rfc3339),
    })
}

/// The key alone on standard output, so that it can be piped; what people want to know on standard
/// error.
fn shown(key: &NewKey, record: &ApiKeyRecord) -> String {
    eprintln!(
        "key {} of {:?}: {}; it is shown this once",
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
                None => "for ever".into(),
            },
        ]
        .join(", ")
    );
    format!("{}\n", key.text)
}

async fn create(store: &SharedStore, wanted: &Wanted<'_>) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let (key, record) = make(wanted, now)?;
    let note = AuditNote::new(&Actor::command_line(), "key-created", &record.id, now)
        .changed(None, Some(said(&record)));
    store.add_api_key(&record, None, &note).await.context("adding the key")?;
    Ok(shown(&key, &record))
}

async fn rotate(
    store: &SharedStore,
    id: &str,
    overlap_seconds: u32,
    expires_in_days: Option<u32>,
) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let old = find(store, id).await?;
    if standing(&old, now) != "good" {
        return Err(anyhow!(
            "key {id} has ended already; make a new one with `rankduel keys create`"
        ));
    }
    let scopes: Vec<_> = Scopes::from_names(&old.scopes).iter().collect();
    let wanted = Wanted {
        name: &old.name,
        scopes: &scopes,
        experiments: old.experiments.as_ref(),
        expires_in_days,
    };
    let (key, record) = make(&wanted, now)?;
    let record = ApiKeyRecord { replaces: Some(old.id.clone()), ..record };
    let ends_at = now + i64::from(overlap_seconds) * 1000;
    let note = AuditNote::new(&Actor::command_line(), "key-rotated", &old.id, now).changed(
        Some(said(&old)),
        Some(json!({"replaced_by": record.id, "expires_at": rfc3339(ends_at)})),
    );
    store.add_api_key(&record, Some((&old.id, ends_at)), &note).await.context("adding the key")?;
    eprintln!(
        "key {id} is good until {}",
        rfc3339(old.expires_at.map_or(ends_at, |at| at.min(ends_at)))
    );
    Ok(shown(&key, &record))
}

async fn revoke(store: &SharedStore, id: &str) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let old = find(store, id).await?;
    let note = AuditNote::new(&Actor::command_line(), "key-revoked", &old.id, now)
        .changed(Some(said(&old)), None);
    if store.revoke_api_key(&old.id, now, &note).await.context("revoking the key")? {
        Ok(format!("key {id} is revoked; every server refuses it within ten seconds\n"))
    } else {
        Ok(format!("key {id} was revoked before\n"))
    }
}

async fn find(store: &SharedStore, id: &str) -> anyhow::Result<ApiKeyRecord> {
    let keys = store.api_keys().await.context("reading the keys")?;
    keys.into_iter()
        .find(|key| key.id == id)
        .ok_or_else(|| anyhow!("there is no key {id}; `rankduel keys list` names them"))
}

fn standing(key: &ApiKeyRecord, now: i64) -> &'static str {
    match (key.revoked_at, key.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= now => "expired",
        _ => "good",
    }
}

async fn list(store: &SharedStore) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let mut keys = store.api_keys().await.context("reading the keys")?;
    if keys.is_empty() {
        return Ok(
            "there is no key in the database; those of RANKDUEL_API_KEYS are not listed\n".into()
        );
    }
    keys.sort_by_key(|key| key.created_at);
    let time = |at: Option<i64>, none: &str| {
        at.map_or_else(|| none.to_owned(), |at| rfc3339(at - at.rem_euclid(1000)))
    };
    let mut text = format!(
        "{:<8}  {:<7}  {:<27}  {:<20}  {:<20}  {:<20}  {}\n",
        "id", "is", "scopes", "created", "expires", "last used", "name, experiments"
    );
    for key in &keys {
        let experiments = key
            .experiments
            .as_ref()
            .map_or(String::new(), |names| format!(", for {}", names.join(" ")));
        // writing to a string does not fail
        let _ = writeln!(
            text,
            "{:<8}  {:<7}  {:<27}  {:<20}  {:<20}  {:<20}  {}{experiments}",
            key.id,
            standing(key, now),
            Scopes::from_names(&key.scopes).to_string(),
            time(Some(key.created_at), ""),
            time(key.expires_at, "never"),
            time(key.last_used_at, "never"),
            key.name,
        );
    }
    Ok(text)
}
