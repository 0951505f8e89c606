//! The wall clock jumps, and two processes disagree about the time.
//!
//! The tests run the real program; libfaketime replaces the system's time.

use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::scene::Scene;
use crate::support::client::{Client, steady, until, with};
use crate::support::server::{FREE_PORT, Process, rankduel_on};
use crate::support::{Kind, fresh_database};
use crate::verify::verify;
use crate::{rounds, some_moment};

/// The clock error of each process, by round. A duel expires after an hour.
const WRONG: [[&str; 2]; 6] =
    [["+2h", "+2h"], ["-2h", "-2h"], ["+0", "+90m"], ["+3y", "-3y"], ["-1d", "+0"], ["+0", "+0"]];

/// The clocks of two processes.
struct Clocks(TempDir);

impl Clocks {
    fn right() -> Self {
        let clocks = Self(tempfile::tempdir().expect("a folder"));
        clocks.set(["+0", "+0"]);
        clocks
    }

    fn set(&self, wrong: [&str; 2]) {
        for (replica, wrong) in wrong.iter().enumerate() {
            // Replace the file atomically, because a process may be reading it.
            let new = self.0.path().join("new");
            std::fs::write(&new, format!("{wrong}\n")).expect("to write");
            std::fs::rename(new, self.0.path().join(replica.to_string())).expect("to rename");
        }
    }

    async fn scene(&self, url: &str) -> Scene {
        let library = library().display().to_string();
        let hands = format!("{}/{{replica}}", self.0.path().display());
        let variables = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", &hands),
            ("FAKETIME_NO_CACHE", "1"),
            // Timeouts do not use the wall clock.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        Scene::set_with(url, 2, &variables, None).await
    }
}

fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists())
        .expect("libfaketime is not installed: run scripts/install-packages")
}

/// `is_own`: a process uses its own clock.
async fn clocks_jump(url: &str, is_own: bool) {
    let times = rounds(6);
    let clocks = Clocks::right();
    let mut scene = clocks.scene(url).await;
    scene.open();
    let expired = |scene: &Scene| scene.office.know(|memory| memory.expired());
    let mut round = 0;
    // A duel must be in flight when the clocks jump ahead; on a busy machine, callers may be
    // between two duels.
    while round < times || (is_own && expired(&scene) == 0 && round < 10 * times) {
        scene.acknowledges(20).await;
        some_moment(100).await;
        clocks.set(WRONG[round as usize % WRONG.len()]);
        round += 1;
    }
    scene.acknowledges(20).await;
    assert_eq!(expired(&scene) > 0, is_own, "duels in flight when the clocks jumped ahead");
    verify(scene, url, "clock jumps", round).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_jump_on_sqlite() {
    let database = fresh_database(Kind::Sqlite).await;
    clocks_jump(&database.url, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_jump_on_postgres() {
    let cluster = Cluster::start().await;
    clocks_jump(&cluster.database("rankduel").await, false).await;
}

/// Servers take the time from their database. The one that is ahead would count cohorts whose duels
/// the other still issues.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_ahead_bounds_nothing_for_another() {
    let cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let clocks = Clocks::right();
    clocks.set(["+2h", "+0"]);
    let serve = |replica: &str| {
        let mut command = rankduel_on(&url, &["serve", FREE_PORT]);
        command.env("LD_PRELOAD", library());
        command.env("FAKETIME_TIMESTAMP_FILE", clocks.0.path().join(replica));
        command.envs([("FAKETIME_NO_CACHE", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
        let process = Process::start(command);
        let client = Client::new(&process.url);
        (process, client)
    };
    let ((process, ahead), (_right, right)) = (serve("0"), serve("1"));
    let window = json!({"answer_window_seconds": 1});
    ahead.create(&with(steady("search", &["a", "b"]), window)).await;
    for (before, client) in [&ahead, &right, &ahead, &right].into_iter().enumerate() {
        let duel = client.pair("search").await;
        client.answer("search", &duel, "left").await;
        until("the answer to count", async || {
            let rests_on = client.verdict("search").await["rests_on"].clone();
            rests_on["waiting"] == 0 && rests_on["answers"] == before + 1
        })
        .await;
    }
    let metrics = ahead.get("/metrics").await.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("rankduel_clock_ahead_seconds "));
    let seconds: f64 = line.expect("the metric").parse().expect("a number");
    assert!((7190.0..7210.0).contains(&seconds), "{seconds}");
    let log = process.stop();
    assert!(log.contains("the clock of this machine is not that of the database"), "{log}");
}
