//! The wall clock jumps, and two processes disagree about the time.
//!
//! The tests run the real program; libfaketime replaces the system's time.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::scene::Scene;
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

async fn clocks_jump(url: &str) {
    let times = rounds(6);
    let clocks = Clocks::right();
    let mut scene = clocks.scene(url).await;
    scene.open();
    let expired = |scene: &Scene| scene.office.know(|memory| memory.expired());
    let mut round = 0;
    // A duel must be in flight when the clocks jump ahead; on a busy machine, callers may be
    // between two duels.
    while round < times || (expired(&scene) == 0 && round < 10 * times) {
        scene.acknowledges(20).await;
        some_moment(100).await;
        clocks.set(WRONG[round as usize % WRONG.len()]);
        round += 1;
    }
    scene.acknowledges(20).await;
    assert!(expired(&scene) > 0, "no duel was in flight when the clocks jumped ahead");
    verify(scene, url, "clock jumps", round).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_jump_on_sqlite() {
    let database = fresh_database(Kind::Sqlite).await;
    clocks_jump(&database.url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_jump_on_postgres() {
    let cluster = Cluster::start().await;
    clocks_jump(&cluster.database("rankduel").await).await;
}
