//! A server that waits while it starts: it says what for, names who is in its way, and a signal
//! ends it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::client::{eventually, until};
use crate::support::server::{FREE_PORT, Process, rankduel_on};
use crate::support::{KINDS, Kind, fresh_database};

/// A server that does not listen yet.
struct Starting {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Starting {
    fn new(url: &str) -> Self {
        let mut command = rankduel_on(url, &["serve", FREE_PORT]);
        let mut child = command.stdout(Stdio::null()).spawn().expect("the program");
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) =
            (BufReader::new(child.stderr.take().expect("its log")), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &format!("{line}\n");
            }
        });
        Self { child, log }
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Wait until the log has each of `parts`.
    async fn says(&self, parts: &[&str]) {
        eventually(&format!("{parts:?} in the log"), async || {
            let log = self.log();
            parts.iter().all(|part| log.contains(part)).then_some(())
        })
        .await;
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let child = &mut self.child;
        eventually("the end of the program", async || child.try_wait().expect("a status"))
            .await
            .code()
    }

    /// Send a signal; the program must end as a server that was stopped while it started.
    async fn stop(mut self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        assert_eq!(self.exit_code().await, Some(0), "{}", self.log());
        self.says(&["stopped while starting"]).await;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // Both fail if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Backends of servers that migrate.
const MIGRATING: &str = "select count(*) from pg_stat_activity
     where datname = current_database() and application_name = 'rankduel'";

#[tokio::test]
async fn a_migration_that_waits_for_a_lock_says_so_and_leaves_no_backend_behind() {
    for kind in KINDS {
        let database = fresh_database(kind).await;
        database.connect().await.close().await; // makes the file
        let held = database
            .hold(match kind {
                Kind::Sqlite => "begin immediate; create table other (x integer)",
                Kind::Postgres => "begin; create table _sqlx_migrations (x integer)",
            })
            .await;
        for signal in ["TERM", "INT"] {
            let server = Starting::new(&database.url);
            server.says(&["waiting for the migration of the database's schema"]).await;
            server.stop(signal).await;
            if kind == Kind::Postgres {
                // A backend that went on waiting would block all who want the table after it.
                until("the backend to end", async || database.count(MIGRATING).await == 0).await;
            }
        }
        drop(held);
        Process::serving(&database.url, &[]).0.stop();
    }
}

/// Something accepts connections and never answers.
#[tokio::test]
async fn a_signal_ends_a_server_whose_database_does_not_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://somebody@{}/db?sslmode=disable", silent.local_addr().unwrap());
    let server = Starting::new(&url);
    server.says(&["not serving yet", "waiting for"]).await;
    server.stop("TERM").await;

    let mut unattended = Starting::new(&url);
    assert_eq!(unattended.exit_code().await, Some(1), "{}", unattended.log());
    unattended.says(&["the database did not respond within"]).await;
}
