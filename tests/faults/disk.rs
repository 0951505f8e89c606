//! The disk is full or read-only.
//!
//! A file next to the database fills a small file system (tmpfs); removing that file frees space.
//! Mounting needs root, or sudo without a password. Without either, these tests fail and say so.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cluster::{Cluster, is_root};
use crate::scene::Scene;
use crate::support::server::{outcome, rankduel_on};
use crate::{inject, some_moment};

/// A file system of limited size.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Self {
        let folder = tempfile::Builder::new().prefix("rd-disk").tempdir().expect("a folder");
        as_root(
            &["mount", "-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=1777"), "tmpfs"],
            folder.path(),
        );
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Write until the file system is full.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.ballast()).expect("a file");
        while file.write_all(&[0x5a; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.ballast()).expect("to remove a file");
    }

    fn remount(&self, how: &str) {
        as_root(&["mount", "-o", &format!("remount,{how}")], self.path());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because processes of a failed test may still use it.
        let _ = root_command(&["umount", "--lazy"], self.path()).status();
    }
}

fn root_command(words: &[&str], folder: &Path) -> Command {
    let mut words = words.to_vec();
    if !is_root() {
        words.splice(0..0, ["sudo", "--non-interactive"]);
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(folder);
    command
}

fn as_root(words: &[&str], folder: &Path) {
    let done = root_command(words, folder).output();
    let done = done.unwrap_or_else(|error| panic!("{words:?} needs root, or sudo: {error}"));
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words:?} needs root, or sudo without a password: {stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_sqlite_is_full() {
    let disk = SmallDisk::mount(24);
    let url = format!("sqlite://{}/rankduel.db", disk.path().display());
    let scene = Scene::set(&url, 2).await;
    inject(scene, &url, "disk full", 2, async |scene, _| {
        disk.fill();
        scene.refuses().await;
        // It can still be read, so duels go on.
        let ready = scene.client(0).get("/readyz").await.json(200);
        assert_eq!(ready["checks"]["database"]["status"], "ok");
        some_moment(200).await;
        disk.free();
    })
    .await;
}

#[test]
fn a_start_on_a_full_disk_names_it() {
    let disk = SmallDisk::mount(4);
    let url = |name| format!("sqlite://{}/{name}", disk.path().display());
    assert_eq!(outcome(rankduel_on(&url("served.db"), &["migrate"])).0, Some(0));
    disk.fill();
    for name in ["served.db", "new.db"] {
        let serve = rankduel_on(&url(name), &["serve", "--listen", "127.0.0.1:0"]);
        let (code, _, stderr) = outcome(serve);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(name) && stderr.contains("full"), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_postgres_is_full() {
    let disk = SmallDisk::mount(96);
    let mut cluster = Cluster::in_folder(disk.path().to_owned());
    cluster.start_again().await;
    let url = cluster.database("rankduel").await;
    let scene = Scene::set(&url, 2).await;
    inject(scene, &url, "disk full", 2, async |scene, _| {
        disk.fill();
        scene.refuses().await;
        some_moment(200).await;
        disk.free();
        // PostgreSQL exits if it cannot write its log; a supervisor would restart it.
        if cluster.has_ended() {
            cluster.start_again().await;
        }
    })
    .await;
}

/// As after a failover to a server that is still a standby.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_read_only() {
    let cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let scene = Scene::set(&url, 2).await;
    inject(scene, &url, "read-only", 2, async |scene, _| {
        cluster.execute("alter system set default_transaction_read_only = on").await;
        cluster.execute("select pg_reload_conf()").await;
        scene.refuses().await;
        some_moment(200).await;
        cluster.execute("alter system reset default_transaction_read_only").await;
        cluster.execute("select pg_reload_conf()").await;
    })
    .await;
}

/// On a read-only file system, no process starts. All answers acknowledged before are there
/// afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_sqlite_is_read_only() {
    let disk = SmallDisk::mount(24);
    let url = format!("sqlite://{}/rankduel.db", disk.path().display());
    let scene = Scene::set(&url, 1).await;
    inject(scene, &url, "read-only", 2, async |scene, _| {
        scene.kill(0);
        disk.remount("ro");
        let (code, _, error) =
            outcome(rankduel_on(&url, &["serve", "--listen", "127.0.0.1:0", "--log", "error"]));
        assert_eq!(code, Some(1), "{error}");
        assert!(
            error.contains("readonly database") && error.trim_end().lines().count() == 1,
            "{error}"
        );
        disk.remount("rw");
        scene.start(0);
    })
    .await;
}
