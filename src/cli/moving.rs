//! `rankduel move`: moves an experiment to another database while it is served.

use anyhow::Context as _;
use clap::Args;

use super::database::open_set;
use super::{CommandError, runtime};
use crate::access::Actor;
use crate::clock::{Clock as _, SystemClock};
use crate::config::StoreArgs;
use crate::store::{Database as _, DatabaseSet, MoveError, Moved};

/// Move an experiment to another one of several databases while it is served
///
/// The command copies the log and the snapshots while servers go on. Then it stops feedback on the
/// experiment for a moment, copies the rest and switches; the servers follow by themselves.
/// Feedback that comes in this moment waits, or is answered with 503 and can be sent again. Duels
/// that were issued stay valid.
///
/// A command that was stopped can be run again, and goes on. Until the switch, --abort undoes it.
/// Stopped in the moment of the switch, it leaves an experiment that accepts no feedback until one
/// of the two is run.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment
    #[arg(value_name = "NAME")]
    name: String,

    /// The database to move it to: its position in the list of URLs, from 1, or its URL
    #[arg(long, value_name = "POSITION|URL", required_unless_present = "abort")]
    to: Option<String>,

    /// Undo a move that has not switched yet
    #[arg(long, conflicts_with = "to")]
    abort: bool,

    #[command(flatten)]
    store: StoreArgs,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let Arguments { name, to, .. } = arguments;
    let urls = arguments.store.database_urls();
    if urls.len() < 2 {
        return Err(CommandError::Usage(
            "--database-url has one database: give all databases of the servers, in the same order"
                .into(),
        ));
    }
    let to = to.as_deref().map(|to| index(to, &urls)).transpose()?;
    runtime()?.block_on(async {
        let set = open_set(&urls, &[]).await?;
        set.check().await.context("the databases cannot be used")?;
        let done = match to {
            Some(to) => move_to(&set, name, to).await,
            None => undo(&set, name).await,
        };
        set.close().await;
        println!("{}", done?);
        Ok(())
    })
}

/// The index of the database that `--to` names.
fn index(to: &str, urls: &[String]) -> Result<usize, CommandError> {
    let position = to.parse().ok().and_then(|position: usize| position.checked_sub(1));
    let index = position.filter(|index| *index < urls.len());
    index.or_else(|| urls.iter().position(|url| url == to)).ok_or_else(|| {
        CommandError::Usage(format!(
            "--to must be a position from 1 to {} or one of the URLs of --database-url",
            urls.len()
        ))
    })
}

async fn move_to(set: &DatabaseSet, name: &str, to: usize) -> Result<String, CommandError> {
    let by = (&Actor::command_line()).into();
    let moved = set.move_experiment(name, to, &by, || SystemClock.now_ms()).await;
    let Moved { from, to, entries, pause } = moved.map_err(|error| {
        let what = not_moved(name, &error);
        failed(error, &what)
    })?;
    Ok(match (from, pause) {
        (None, _) => format!("`{name}` is in database {to} already; nothing was changed"),
        (Some(from), None) => {
            format!("`{name}` had arrived in database {to}; it is removed from database {from} now")
        }
        (Some(from), Some(pause)) => format!(
            "moved `{name}` from database {from} to database {to}: {entries} log entries copied, \
             feedback waited for {} ms",
            pause.as_millis()
        ),
    })
}

fn not_moved(name: &str, error: &MoveError) -> String {
    match error {
        MoveError::Refused(_) => format!("`{name}` was not moved"),
        MoveError::Store(_) => format!(
            "the move of `{name}` stopped; run the command again, or undo the move with --abort"
        ),
    }
}

async fn undo(set: &DatabaseSet, name: &str) -> Result<String, CommandError> {
    let aborted = set.abort_move(name).await;
    let aborted =
        aborted.map_err(|error| failed(error, &format!("the move of `{name}` was not undone")))?;
    Ok(match aborted {
        true => format!("the move of `{name}` was undone; it is where it was"),
        false => format!("`{name}` is not moving; nothing was changed"),
    })
}

fn failed(error: MoveError, what: &str) -> CommandError {
    CommandError::Failed(anyhow::Error::new(error).context(what.to_owned()))
}
