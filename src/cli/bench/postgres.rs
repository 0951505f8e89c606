//! A PostgreSQL server while it is measured: the processor time of its processes, and what its
//! connections wait for.

use std::time::Duration;

use anyhow::Context as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::process::Process;

/// How often it is looked at what connections wait for.
const LOOKS_APART: Duration = Duration::from_millis(20);

/// What is seen in one look: of the connections to this database, how many wait for a lock, such as
/// that of a row which another transaction has changed, and how many for the log to be on disk.
const WAITS: &str = "
    select count(*) filter (where wait_event_type = 'Lock'),
           count(*) filter (where lower(wait_event) in ('walsync', 'walwrite'))
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()";

/// How many connections waited, on average.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// For a lock of another transaction.
    pub for_locks: f64,
    /// For the log to be on disk.
    pub for_disk: f64,
}

/// Looks at a server until it is asked what it has seen.
pub struct Watch {
    stop: oneshot::Sender<()>,
    watching: JoinHandle<anyhow::Result<Waits>>,
}

impl Watch {
    /// From now on, over a connection of its own.
    pub async fn start(database_url: &str) -> anyhow::Result<Self> {
        let mut connection = connect(database_url).await?;
        let (stop, mut stopped) = oneshot::channel();
        let watching = tokio::spawn(async move {
            let (mut looks, mut locks, mut disk) = (0.0, 0, 0);
            loop {
                let seen: (i64, i64) = sqlx::query_as(WAITS)
                    .fetch_one(&mut connection)
                    .await
                    .context("asking what PostgreSQL waits for")?;
                looks += 1.0;
                locks += seen.0;
                disk += seen.1;
                if tokio::time::timeout(LOOKS_APART, &mut stopped).await.is_ok() {
                    break;
                }
            }
            connection.close().await.context("leaving PostgreSQL")?;
            Ok(Waits { for_locks: locks as f64 / looks, for_disk: disk as f64 / looks })
        });
        Ok(Self { stop, watching })
    }

    /// What was seen.
    pub async fn end(self) -> anyhow::Result<Waits> {
        let _ = self.stop.send(());
        self.watching.await.context("watching PostgreSQL")?
    }
}

async fn connect(database_url: &str) -> anyhow::Result<PgConnection> {
    let options: PgConnectOptions = database_url.parse().context("the database's URL")?;
    options.connect().await.context("a connection that watches PostgreSQL")
}

/// The processes of a server on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Processes {
    /// The one that all others are children of.
    postmaster: u32,
}

impl Processes {
    /// Those of the database's server; `None` where they are not seen in `/proc`.
    pub async fn of(database_url: &str) -> anyhow::Result<Option<Self>> {
        let mut connection = connect(database_url).await?;
        let own: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut connection)
            .await
            .context("asking the database for its process")?;
        let processes = u32::try_from(own)
            .ok()
            .and_then(Process::read)
            .filter(|process| process.name == "postgres");
        connection.close().await.context("leaving PostgreSQL")?;
        Ok(processes.map(|process| Self { postmaster: process.parent }))
    }

    /// Processor time so far, of all of them, those that have ended too.
    pub fn processor_time(self) -> Option<Duration> {
        let postmaster = Process::read(self.postmaster)?;
        let children: Duration = std::fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| Process::read(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .filter(|process| process.parent == self.postmaster)
            .map(|process| process.time)
            .sum();
        Some(postmaster.time + postmaster.time_of_ended_children + children)
    }
}
