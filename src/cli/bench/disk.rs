//! The speed of the disk for one connection: commits of one small row, one after the other.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

/// Commits per second of one connection that does nothing else, measured for `within`. Each commit
/// is as durable as a commit of the service.
pub async fn commits_per_second(database_url: &str, within: Duration) -> anyhow::Result<f64> {
    let failed = "the commits of one connection cannot be measured";
    if database_url.starts_with("sqlite:") {
        let options: SqliteConnectOptions = database_url.parse().context(failed)?;
        let mut connection =
            options.synchronous(SqliteSynchronous::Full).connect().await.context(failed)?;
        let rate = measure(&mut connection, within).await.context(failed)?;
        connection.close().await.context(failed)?;
        Ok(rate)
    } else {
        let options: PgConnectOptions = database_url.parse().context(failed)?;
        let mut connection = options.connect().await.context(failed)?;
        connection.execute("set synchronous_commit = on").await.context(failed)?;
        let rate = measure(&mut connection, within).await.context(failed)?;
        connection.close().await.context(failed)?;
        Ok(rate)
    }
}

async fn measure<C>(connection: &mut C, within: Duration) -> sqlx::Result<f64>
where
    for<'c> &'c mut C: sqlx::Executor<'c>,
{
    connection.execute("create table if not exists rankduel_bench (n integer)").await?;
    let started = Instant::now();
    let mut commits = 0u32;
    while started.elapsed() < within {
        connection.execute("insert into rankduel_bench (n) values (1)").await?;
        commits += 1;
    }
    let rate = f64::from(commits) / started.elapsed().as_secs_f64();
    connection.execute("drop table rankduel_bench").await?;
    Ok(rate)
}
