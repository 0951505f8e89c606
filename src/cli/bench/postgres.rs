//! Observes a PostgreSQL server during a measurement: the processor time of its processes, and the
//! waits of its connections.

use std::time::Duration;

use anyhow::Context as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::process::Process;

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// One sample: the number of connections to this database that wait for a lock, for example of a
/// row that another transaction has changed, and the number that wait for the log to reach the
/// disk.
const WAITS: &str = "
    select count(*) filter (where wait_event_type = 'Lock'),
           count(*) filter (where lower(wait_event) in ('walsync', 'walwrite'))
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()";

/// Mean numbers of waiting connections.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Connections that wait for a lock of another transaction.
    pub for_locks: f64,
    /// Connections that wait for the log to reach the disk.
    pub for_disk: f64,
}

/// Samples the waits of a server in the background.
pub struct Sampler {
    stop: oneshot::Sender<()>,
    sampling: JoinHandle<anyhow::Result<Waits>>,
}

impl Sampler {
    /// Starts sampling, over a separate connection.
    pub async fn start(database_url: &str) -> anyhow::Result<Self> {
        let mut connection = connect(database_url).await?;
        let (stop, mut stopped) = oneshot::channel();
        let sampling = tokio::spawn(async move {
            let (mut samples, mut locks, mut disk) = (0.0, 0, 0);
            loop {
                let waits: (i64, i64) = sqlx::query_as(WAITS)
                    .fetch_one(&mut connection)
                    .await
                    .context("the waits of PostgreSQL cannot be read")?;
                samples += 1.0;
                locks += waits.0;
                disk += waits.1;
                if tokio::time::timeout(SAMPLE_INTERVAL, &mut stopped).await.is_ok() {
                    break;
                }
            }
            connection.close().await.context("the connection to PostgreSQL cannot be closed")?;
            Ok(Waits { for_locks: locks as f64 / samples, for_disk: disk as f64 / samples })
        });
        Ok(Self { stop, sampling })
    }

    /// Stops sampling and returns the result.
    pub async fn end(self) -> anyhow::Result<Waits> {
        let _ = self.stop.send(());
        self.sampling.await.context("sampling of PostgreSQL failed")?
    }
}

async fn connect(database_url: &str) -> anyhow::Result<PgConnection> {
    let options: PgConnectOptions =
        database_url.parse().context("the URL of the database is invalid")?;
    options.connect().await.context("cannot connect to PostgreSQL")
}

/// The processes of a server on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Processes {
    /// The parent of all other processes.
    postmaster: u32,
}

impl Processes {
    /// The processes of the server of this database; `None` if they are not in `/proc`.
    pub async fn of(database_url: &str) -> anyhow::Result<Option<Self>> {
        let mut connection = connect(database_url).await?;
        let own: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut connection)
            .await
            .context("the process of the connection cannot be read")?;
        let processes = u32::try_from(own)
            .ok()
            .and_then(Process::read)
            .filter(|process| process.name == "postgres");
        connection.close().await.context("the connection to PostgreSQL cannot be closed")?;
        Ok(processes.map(|process| Self { postmaster: process.parent }))
    }

    /// Total processor time so far, including processes that have ended.
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
