//! The files of an SQLite database: one server takes them, and it acknowledges nothing while they
//! are not where the next start looks for them, whole and by one name.

use std::path::{Path, PathBuf};

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::client::{Client, steady, until};
use crate::support::server::{Process, outcome, rankduel_on};
use crate::support::{Kind, TestDatabase, fresh_database};

fn serve(database: &TestDatabase) -> (Process, Client) {
    Process::serving(&database.url, &[])
}

/// Run a command that must fail, and return its only line.
#[track_caller]
fn refused(url: &str, arguments: &[&str]) -> String {
    let (code, _, error) = outcome(rankduel_on(url, arguments));
    assert_eq!((code, error.trim_end().lines().count()), (Some(1), 1), "{error}");
    error
}

fn beside(database: &TestDatabase, ending: &str) -> PathBuf {
    format!("{}{ending}", database.path().display()).into()
}

/// A server with five answers in its log, and one that was not sent yet.
async fn answered() -> (TestDatabase, Process, Client, Value) {
    let database = fresh_database(Kind::Sqlite).await;
    let (process, client) = serve(&database);
    client.create(&steady("search", &["a", "b"])).await;
    for _ in 0..5 {
        let duel = client.pair("search").await;
        client.answer("search", &duel, "left").await;
    }
    let duel = client.pair("search").await;
    (database, process, client, json!({"duel_id": duel["duel_id"], "outcome": "left"}))
}

/// Nothing is acknowledged, repeats neither; duels are issued, and the log says what to do.
async fn assert_stopped(client: &Client, answer: &Value) {
    for _ in 0..2 {
        client
            .feedback("search", answer)
            .await
            .problem_saying(ProblemKind::Unavailable, "moved, deleted or truncated");
    }
    client.pair("search").await;
    let body = steady("other", &["a", "b"]);
    client.post("/v1/experiments", &body).await.problem(ProblemKind::Unavailable);
    until("a server that is not ready", async || client.get("/readyz").await.status == 503).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_moves_is_used_again_once_it_is_back() {
    let (database, process, client, answer) = answered().await;
    let (path, away) = (database.path(), beside(&database, ".away"));
    std::fs::rename(path, &away).expect("to move it");
    assert_stopped(&client, &answer).await;
    // a copy in its place is another file
    std::fs::copy(&away, path).expect("to copy it");
    assert_stopped(&client, &answer).await;
    std::fs::rename(&away, path).expect("to move it back");
    assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 7);
    let log = process.stop();
    assert!(log.contains("created an empty one"), "{log}");
    assert!(log.contains("move the file back"), "{log}");
    assert_eq!(database.count("select count(*) from log").await, 7);
}

/// The server moves the open write-ahead log into the database when it stops. Without its lock
/// file, a second server could start.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_write_ahead_log_loses_nothing() {
    for ending in ["-wal", "-shm", ".lock"] {
        let (database, process, client, answer) = answered().await;
        std::fs::remove_file(beside(&database, ending)).expect("to delete it");
        assert_stopped(&client, &answer).await;
        let log = process.stop();
        assert!(log.contains("restart the server"), "{log}");
        let (_process, client) = serve(&database);
        assert_eq!(client.position("search").await, 6, "{ending}");
        assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 7);
        let (code, verified, error) = outcome(rankduel_on(&database.url, &["verify"]));
        assert_eq!(code, Some(0), "{verified}{error}");
    }
}

/// As `cp -al` makes it: SQLite keeps a log beside each name.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_name_of_a_file_is_refused() {
    let (database, process, client, answer) = answered().await;
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("rankduel.db");
    let url = format!("sqlite://{}", other.display());
    std::fs::hard_link(database.path(), &other).expect("to link it");
    for url in [&url, &database.url] {
        for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["verify"], &["keys", "list"]]
        {
            let error = refused(url, arguments);
            assert!(error.contains("has 2 names (hard links)"), "{arguments:?}: {error}");
        }
    }
    assert_stopped(&client, &answer).await;
    std::fs::remove_file(&other).expect("to delete it");
    for ending in ["-wal", "-shm", ".lock"] {
        std::fs::hard_link(beside(&database, ending), &other).expect("to link it");
        assert_stopped(&client, &answer).await;
        std::fs::remove_file(&other).expect("to delete it");
    }
    // under its only name, which is not the one that the server knows
    std::fs::rename(database.path(), &other).expect("to move it");
    let error = refused(&url, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(error.contains("by another name"), "{error}");
    std::fs::rename(&other, database.path()).expect("to move it back");
    assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 7);
    let log = process.stop();
    assert!(log.contains("delete its other names"), "{log}");
    assert_eq!(database.count("select count(*) from log").await, 7);
}

/// SQLite would go on writing behind the hole. The answers that were moved into the database
/// before are still there after the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_is_noticed_before_the_next_answer() {
    // the log starts anew after the checkpoint: a frame and a half of some ten
    for (ending, kept) in [("-wal", 0), ("-wal", 6000), ("", 0), ("", 50_000)] {
        let (database, process, client, answer) = answered().await;
        assert_eq!(database.count("pragma wal_checkpoint(passive)").await, 0);
        for _ in 0..2 {
            let duel = client.pair("search").await;
            client.answer("search", &duel, "left").await;
        }
        let path = beside(&database, ending);
        let file = std::fs::File::options().write(true).open(path).expect("to open it");
        let bytes = file.metadata().expect("its size").len();
        file.set_len(kept).expect("to truncate it");
        assert_stopped(&client, &answer).await;
        // long again, by zeros
        file.set_len(bytes).expect("to write");
        assert_stopped(&client, &answer).await;
        let log = process.stop();
        let says = format!("rankduel.db{ending} was truncated under the server");
        assert!(log.contains(&says), "{log}");
        if ending == "-wal" {
            let (_process, client) = serve(&database);
            assert_eq!(client.position("search").await, 6, "{kept}");
            assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 7);
            let (code, verified, error) = outcome(rankduel_on(&database.url, &["verify"]));
            assert_eq!(code, Some(0), "{verified}{error}");
        }
    }
}

/// SQLite itself truncates its files: other programs move the log into the database, and compact
/// it, while the server runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_sqlite_truncates_is_no_fault() {
    let (database, process, client, answer) = answered().await;
    database.execute("create table filler as with recursive n(i) as (values (1) union all         select i + 1 from n where i < 9999) select i, randomblob(99) from n").await;
    let duel = client.pair("search").await;
    client.answer("search", &duel, "left").await;
    database.execute("drop table filler").await;
    for round in 0..3 {
        database.execute("vacuum").await;
        assert_eq!(database.count("pragma wal_checkpoint(truncate)").await, 0);
        if round == 1 {
            database.execute("create table other as select 1").await;
            assert_eq!(database.count("pragma wal_checkpoint(passive)").await, 0);
        }
        let (code, _, error) = outcome(rankduel_on(&database.url, &["signing-keys", "rotate"]));
        assert_eq!(code, Some(0), "{error}");
        let duel = client.pair("search").await;
        client.answer("search", &duel, "left").await;
    }
    assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 11);
    process.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_the_database_says_what_is_left_of_it() {
    let (database, process, _, _) = answered().await;
    process.signal("KILL");
    process.wait();
    let path = database.path();
    let remove = |file: &Path| std::fs::remove_file(file).expect("to delete it");
    let everything = std::fs::read(path).expect("the database");
    remove(path);
    for left in ["-wal", ".lock"] {
        for arguments in [&["serve", "--listen", "0.0.0.0:0"][..], &["verify"], &["keys", "list"]] {
            let error = refused(&database.url, arguments);
            let names_it = error.contains(&beside(&database, left).display().to_string());
            assert!(names_it && error.contains("is missing or empty"), "{error}");
        }
        assert!(!path.exists());
        remove(&beside(&database, left));
    }
    // an emptied file is none
    std::fs::write(path, "").expect("to write");
    std::fs::write(beside(&database, ".lock"), "1").expect("to write");
    refused(&database.url, &["verify"]);
    // a backup in its place, or an empty one on purpose
    std::fs::write(path, everything).expect("to write");
    serve(&database);
    for ending in ["", ".lock", "-wal", "-shm"] {
        remove(&beside(&database, ending));
    }
    serve(&database);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_is_refused_and_commands_are_not() {
    let (database, process, client, answer) = answered().await;
    let error = refused(&database.url, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(error.contains("another server (process "), "{error}");
    for arguments in [
        &["verify"][..],
        &["migrate"],
        &["export", "search"],
        &["keys", "list"],
        &["signing-keys", "list"],
    ] {
        let (code, _, error) = outcome(rankduel_on(&database.url, arguments));
        assert_eq!(code, Some(0), "{arguments:?}: {error}");
    }
    assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 7);
    // a killed server leaves its lock file, and no lock
    process.signal("KILL");
    process.wait();
    let (_process, client) = serve(&database);
    assert_eq!(client.feedback("search", &answer).await.json(200)["status"], "duplicate");
}
