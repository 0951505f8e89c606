//! `rankduel signing-keys`: manages the keys that sign duels.

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};

use super::CommandError;
use super::database::{Access, with_store};
use super::output::print;
use crate::config::StoreArgs;
use rankduel_engine::access::Actor;
use rankduel_engine::clock::{Clock as _, SystemClock, rfc3339};
use rankduel_engine::experiment_spec::MAX_DUEL_TTL_SECONDS;
use rankduel_engine::tokens::signing::fresh_key;
use rankduel_store::{AuditNote, SharedStore, SigningKey};

/// Manage the keys that sign duels: list, rotate, retire
///
/// Servers read the keys every ten seconds, and at once when a duel has an unknown key. A new key
/// signs only after a delay, so that every server knows it before the first duel uses it. An older
/// key verifies the duels that it has signed until it is retired.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the keys, and which one signs
    List(StoreArgs),
    /// Add a key that signs after a delay
    Rotate {
        #[command(flatten)]
        store: StoreArgs,
        /// Seconds until the key signs: more than servers need to read the keys, and more than
        /// their clocks differ
        #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..=86_400))]
        after_seconds: u32,
    },
    /// Remove the keys that no open duel needs, or the given key at once
    ///
    /// Without an id, the command removes all keys that were superseded longer ago than the longest
    /// lifetime of a duel (30 days). With an id, it removes that key, for example after a leak.
    /// Servers then refuse every duel that it has signed.
    Retire {
        #[command(flatten)]
        store: StoreArgs,
        /// The id of the key, from `list`
        #[arg(value_name = "ID")]
        id: Option<u32>,
    },
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let (Command::List(args)
    | Command::Rotate { store: args, .. }
    | Command::Retire { store: args, .. }) = &arguments.command;
    let access = match arguments.command {
        Command::List(_) => Access::Reads,
        _ => Access::Changes,
    };
    with_store(args, access, async |store| {
        print(match &arguments.command {
            Command::List(_) => list(store).await?,
            Command::Rotate { after_seconds, .. } => rotate(store, *after_seconds).await?,
            Command::Retire { id, .. } => retire(store, *id).await?,
        })
    })
}

/// The keys in the order of their start, the latest first, and the key that signs now.
async fn keys(store: &SharedStore, now: i64) -> anyhow::Result<(Vec<SigningKey>, Option<u32>)> {
    let keys = store.signing_keys().await.context("the keys cannot be read")?;
    let signs = keys.iter().find(|key| key.active_from <= now).or(keys.last()).map(|key| key.id);
    Ok((keys, signs))
}

async fn list(store: &SharedStore) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let (keys, signs) = keys(store, now).await?;
    if keys.is_empty() {
        return Ok("there is no key yet; the first server creates one\n".into());
    }
    let lines = keys.iter().map(|key| {
        let role = match () {
            () if Some(key.id) == signs => "signs",
            () if key.active_from > now => "will sign",
            () => "verifies",
        };
        format!("{:>10}  {role:<9}  from {}\n", key.id, rfc3339(key.active_from))
    });
    Ok(lines.collect())
}

async fn rotate(store: &SharedStore, after_seconds: u32) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let key = fresh_key(now, now + i64::from(after_seconds) * 1000)?;
    store
        .add_signing_key(&key, &note("signing-key-added", key.id, now))
        .await
        .context("the key cannot be added")?;
    Ok(format!("key {} signs from {} on\n", key.id, rfc3339(key.active_from)))
}

async fn retire(store: &SharedStore, id: Option<u32>) -> anyhow::Result<String> {
    let now = SystemClock.now_ms();
    let (keys, signs) = keys(store, now).await?;
    let retired: Vec<u32> = match id {
        Some(id) if !keys.iter().any(|key| key.id == id) => {
            return Err(anyhow!("there is no key {id}; see `rankduel signing-keys list`"));
        }
        Some(id) if Some(id) == signs => {
            return Err(anyhow!(
                "key {id} signs now: rotate first, wait until the new key signs, then retire this key"
            ));
        }
        Some(id) => vec![id],
        None => superseded(&keys, now),
    };
    let mut text = String::new();
    for id in &retired {
        let note = note("signing-key-removed", *id, now);
        if store.remove_signing_key(*id, &note).await.context("a key cannot be removed")? {
            text += &format!("key {id} is retired\n");
        }
    }
    if text.is_empty() {
        text = "no key was superseded long enough ago\n".into();
    }
    Ok(text)
}

fn note(what: &'static str, id: u32, now: i64) -> AuditNote {
    AuditNote::new(&Actor::command_line(), what, &id.to_string(), now)
}

/// The keys whose successor has signed for longer than the longest lifetime of a duel. `keys` are
/// in the order of their start, the latest first.
fn superseded(keys: &[SigningKey], now: i64) -> Vec<u32> {
    let longest = i64::from(MAX_DUEL_TTL_SECONDS) * 1000;
    keys.windows(2)
        .filter(|turn| turn[0].active_from + longest < now)
        .map(|turn| turn[1].id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_superseded_when_its_successor_has_signed_for_thirty_days() {
        const DAY: i64 = 24 * 3600 * 1000;
        let key =
            |id, day| SigningKey { id, secret: [0; 32], created_at: 0, active_from: day * DAY };
        let keys = [key(4, 90), key(3, 80), key(2, 40), key(1, 0)];
        assert_eq!(superseded(&keys, 70 * DAY), Vec::<u32>::new());
        assert_eq!(superseded(&keys, 70 * DAY + 1), [1]);
        assert_eq!(superseded(&keys, 115 * DAY), [2, 1]);
        assert_eq!(superseded(&keys, 1000 * DAY), [3, 2, 1], "one key always remains");
    }
}
