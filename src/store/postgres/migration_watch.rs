//! Says what a migration waits for.

use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::time::Instant;

use super::sessions::connect;
use crate::store::StoreError;
use crate::store::sql::table_row::table_row;

/// A wait that is longer than this is reported.
const SILENT_FOR: Duration = Duration::from_secs(2);
/// Pause between two looks at the locks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the same wait is reported again.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// A session that has held the lock of migrations for this long without a statement does not
/// migrate: its process was lost, or a pooler keeps the session.
const IDLE_HOLDER_SECONDS: i64 = 5;

/// What `$1`, the number of a server process, waits for, and the sessions that are in its way.
/// Another user's session shows its state only to members of `pg_read_all_stats`.
const BLOCKERS: &str = "
    select blocking.pid, holder.application_name as application,
        holder.client_addr::text as address, holder.state,
        extract(epoch from clock_timestamp() - holder.state_change)::bigint as seconds,
        waiting.locktype = 'advisory' as of_migrations,
        waiting.relation::regclass::text as relation
    from unnest(pg_blocking_pids($1)) as blocking (pid)
    left join pg_stat_activity as holder on holder.pid = blocking.pid
    left join lateral (
        select locktype, relation from pg_locks where pid = $1 and not granted limit 1
    ) as waiting on true
    order by blocking.pid";

table_row! {
    /// A session that a migration waits for.
    #[derive(Debug, PartialEq)]
    struct Blocker {
        pid: i32,
        application: Option<String>,
        address: Option<String>,
        state: Option<String>,
        seconds: Option<i64>,
        of_migrations: Option<bool>,
        relation: Option<String>,
    }
}

impl Blocker {
    /// Whether this session holds the lock of migrations and does not migrate.
    fn is_lost(&self) -> bool {
        self.of_migrations == Some(true)
            && self.state.as_deref().is_some_and(|state| state.starts_with("idle"))
            && self.seconds.is_some_and(|seconds| seconds >= IDLE_HOLDER_SECONDS)
    }

    /// Who holds what, and how to release it.
    fn description(&self) -> String {
        let Self { pid, .. } = self;
        let lock = match (self.of_migrations, &self.relation) {
            (Some(true), _) => "the lock of migrations".to_owned(),
            (_, Some(table)) => format!("a lock on the table {table}"),
            _ => "a lock".to_owned(),
        };
        if *pid == 0 {
            return format!(
                "a prepared transaction holds {lock}; see pg_prepared_xacts, and end it with \
                 COMMIT PREPARED or ROLLBACK PREPARED"
            );
        }
        let mut about = Vec::new();
        about.extend(self.application.clone().filter(|name| !name.is_empty()));
        about.extend(self.address.as_ref().map(|address| format!("from {address}")));
        if let (Some(state), Some(seconds)) = (&self.state, self.seconds) {
            about.push(format!("{state} for {seconds} s"));
        }
        let about =
            if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        format!(
            "backend {pid}{about} of PostgreSQL holds {lock}; if it is not at work, release the \
             lock with: select pg_terminate_backend({pid})"
        )
    }
}

/// Watch the migration in the server process `backend`, and report what it waits for. Returns only
/// when waiting is pointless: the session that holds the lock of migrations is lost.
pub(super) async fn watch(options: &PgConnectOptions, backend: i32) -> StoreError {
    tokio::time::sleep(SILENT_FOR).await;
    let mut connection = None;
    let mut reported: Option<(Instant, Vec<i32>)> = None;
    loop {
        match look(&mut connection, options, backend).await {
            Ok(blockers) => {
                if let Some(lost) = blockers.iter().find(|blocker| blocker.is_lost()) {
                    return StoreError::Locked(lost.description());
                }
                let pids: Vec<i32> = blockers.iter().map(|blocker| blocker.pid).collect();
                let known = reported
                    .as_ref()
                    .is_some_and(|(at, known)| *known == pids && at.elapsed() < REPORT_EVERY);
                if !known {
                    for blocker in &blockers {
                        tracing::warn!("the migration waits: {}", blocker.description());
                    }
                    reported = Some((Instant::now(), pids));
                }
            }
            Err(error) => {
                connection = None;
                tracing::warn!(%error, "cannot see what the migration waits for");
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(
    connection: &mut Option<PgConnection>,
    options: &PgConnectOptions,
    backend: i32,
) -> Result<Vec<Blocker>, StoreError> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(connect(options).await?),
    };
    let blockers = sqlx::query_as(BLOCKERS).bind(backend).fetch_all(connection);
    match tokio::time::timeout(REPORT_EVERY, blockers).await {
        Ok(blockers) => Ok(blockers?),
        Err(_) => Err(StoreError::Slow(REPORT_EVERY)),
    }
}
