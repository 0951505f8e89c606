//! Stored data is damaged: snapshots, the SQLite file, its write-ahead log.

use std::path::{Path, PathBuf};

use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::events::Event;
use rankduel_store::{Snapshot, connect};
use serde_json::json;

use crate::load::{Fate, SentAnswer};
use crate::scene::{NAMES, Scene};
use crate::support::client::Client;
use crate::support::server::{FREE_PORT, Process, outcome, rankduel_on};
use crate::support::{Kind, TestDatabase, fresh_database};
use crate::verify::log;
use crate::{inject, rounds};

on_both_databases! {
    snapshots_are_poisoned
}

/// An invalid snapshot is ignored: the log is authoritative.
async fn snapshots_are_poisoned(database: TestDatabase) {
    let scene = Scene::set(&database.url, 1).await;
    let store = connect(&database.url).await.expect("a store");
    inject(scene, &database.url, "poisoned snapshot", 5, async |scene, round| {
        scene.kill(0);
        for name in NAMES {
            let record = store.experiment(name).await.expect("a store").expect("an experiment");
            let spec: ExperimentSpec = serde_json::from_str(&record.spec).expect("a spec");
            let mut fold = Fold::start(&spec, record.seed, record.created_at);
            for entry in log(&*store, name).await {
                fold.apply(&entry).expect("an entry that follows");
            }
            let mut state = fold.save();
            let middle = (round as usize * 31) % state.len();
            match round % 5 {
                0 => state[middle] ^= 0x10,
                1 => state.truncate(middle),
                2 => state.clear(),
                3 => state.extend_from_slice(&[0; 64]),
                _ => state.rotate_left(1),
            }
            let (format, position) = (fold.format(), fold.state().position);
            let snapshot =
                Snapshot { experiment: record.id, position, format, state, created_at: 0 };
            store.save_snapshot(&snapshot).await.expect("a snapshot that is kept");
        }
        scene.start(0);
    })
    .await;
}

/// The database that a killed process leaves behind, and the acknowledged answers.
struct Left {
    scene: Scene,
    /// A duel of each experiment, by its name, that was issued after all answers.
    newest: Vec<(&'static str, String)>,
    database: TestDatabase,
}

impl Left {
    async fn behind() -> Self {
        let database = fresh_database(Kind::Sqlite).await;
        let mut scene = Scene::set(&database.url, 1).await;
        // The experiments go into the main file; later writes are only in the write-ahead log.
        scene.stop(0);
        scene.start(0);
        scene.open();
        scene.acknowledges(60).await;
        scene.close().await;
        let mut newest = Vec::new();
        for name in NAMES {
            let duel = scene.client(0).next_duel(name).await;
            newest.push((name, duel["duel_id"].as_str().expect("an id").to_owned()));
        }
        scene.kill(0);
        Self { scene, newest, database }
    }

    /// Copy the database into this folder, and return its path there.
    fn copy(&self, folder: &Path) -> PathBuf {
        for suffix in ["", "-wal", "-shm"] {
            let mut from = self.database.path().as_os_str().to_owned();
            from.push(suffix);
            if Path::new(&from).exists() {
                std::fs::copy(&from, folder.join(format!("rankduel.db{suffix}"))).expect("a copy");
            }
        }
        folder.join("rankduel.db")
    }

    /// The acknowledged answers: experiment, duel, outcome and position.
    fn acknowledged(&self) -> Vec<(String, String, &'static str, u64)> {
        let acknowledged = |(id, sent): (&String, &SentAnswer)| match sent.fate {
            Fate::Acknowledged(position) => {
                Some((sent.name.clone(), id.clone(), sent.outcome, position))
            }
            _ => None,
        };
        self.scene.office.know(|memory| memory.duels.iter().filter_map(acknowledged).collect())
    }
}

fn start(path: &Path) -> (Process, Client) {
    Process::serving(&format!("sqlite://{}", path.display()), &["--log", "error"])
}

/// The SQLite file is truncated. The program reports this and does not start, or reports the parts
/// that it cannot read. It never records an acknowledged answer as new.
#[tokio::test(flavor = "multi_thread")]
async fn the_sqlite_file_is_truncated() {
    let times = rounds(6);
    let left = Left::behind().await;
    // Move everything into the main file, as a clean stop does.
    let whole = tempfile::tempdir().expect("a folder");
    let path = left.copy(whole.path());
    let (process, _) = start(&path);
    process.stop();
    let bytes = std::fs::read(&path).expect("the file");
    assert!(!whole.path().join("rankduel.db-wal").exists(), "the write-ahead log still exists");

    for round in 0..times {
        let cut = tempfile::tempdir().expect("a folder");
        let path = cut.path().join("rankduel.db");
        let length = match round % 3 {
            0 => bytes.len() - 4096 * (1 + round as usize % 5),
            1 => bytes.len() / 2 + 1000 + 37 * round as usize,
            _ => 50 + 600 * round as usize,
        };
        std::fs::write(&path, &bytes[..length]).expect("to write");
        let (code, _, error) = outcome(rankduel_on(
            &format!("sqlite://{}", path.display()),
            &["serve", FREE_PORT, "--log", "error"],
        ));
        assert_eq!(code, Some(1), "truncated at {length} of {}: {error}", bytes.len());
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
        assert!(error.contains("malformed") || error.contains("not a database"), "{error}");
    }
}

/// The write-ahead log loses its last commits. SQLite cannot notice this. The program detects the
/// loss at the first answer to a duel that is newer than the remaining log.
#[tokio::test(flavor = "multi_thread")]
async fn the_write_ahead_log_is_truncated() {
    let times = rounds(4);
    let left = Left::behind().await;
    let acknowledged = left.acknowledged();
    let mut reported = 0;
    for round in 0..times {
        let cut = tempfile::tempdir().expect("a folder");
        let path = left.copy(cut.path());
        let ahead = cut.path().join("rankduel.db-wal");
        let length = std::fs::metadata(&ahead).expect("a write-ahead log").len();
        // Cut off between a third and all of it.
        let kept = length * 2 * (times - round - 1) / (3 * times);
        std::fs::OpenOptions::new()
            .write(true)
            .open(&ahead)
            .expect("it")
            .set_len(kept)
            .expect("to truncate it");

        let (process, client) = start(&path);
        for (name, duel) in &left.newest {
            let answer = client.feedback(name, &json!({"duel_id": duel, "outcome": "left"})).await;
            assert_eq!(answer.json(200)["status"], "recorded");
        }
        let mut gone = 0;
        for (name, duel, outcome, position) in &acknowledged {
            let body = json!({"duel_id": duel, "outcome": outcome});
            let receipt = client.feedback(name, &body).await.json(200);
            match receipt["status"].as_str() {
                // The answer is still in the log, at the same position.
                Some("duplicate") => assert_eq!(receipt["position"], *position),
                // The answer is in the log again, because its caller repeated it.
                Some("recorded") => gone += 1,
                other => panic!("{other:?}: {receipt}"),
            }
        }
        let metrics = client.get("/metrics").await.text();
        let regressions =
            metrics.lines().find_map(|line| line.strip_prefix("rankduel_log_regressions_total "));
        let regressions = regressions.expect("a counter").parse::<u64>().expect("a number");
        let output = process.stop();
        assert!(gone > 0, "no answer was lost");
        assert_eq!(output.matches("THE DATABASE HAS LOST").count() as u64, regressions);
        // Every repeated answer is in the log again, once.
        let store = connect(&format!("sqlite://{}", path.display())).await.expect("a store");
        let mut outcomes = 0;
        for name in NAMES {
            let log = log(&*store, name).await;
            outcomes += log.iter().filter(|entry| matches!(entry.event, Event::Outcome(_))).count();
        }
        assert!(outcomes >= acknowledged.len());
        reported += u64::from(regressions > 0);
    }
    assert_eq!(reported, times, "a loss was not reported");
}
