//! The files of an SQLite database: one server takes them, and it acknowledges nothing while they
//! are not where the next start looks for them.

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
fn refused(database: &TestDatabase, arguments: &[&str]) -> String {
    let (code, _, error) = outcome(rankduel_on(&database.url, arguments));
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
            .problem_saying(ProblemKind::Unavailable, "moved or deleted");
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
    assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 6);
    let log = process.stop();
    assert!(log.contains("created an empty one"), "{log}");
    assert!(log.contains("move the file back"), "{log}");
    assert_eq!(database.count("select count(*) from log").await, 6);
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
        assert_eq!(client.position("search").await, 5, "{ending}");
        assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 6);
        let (code, verified, error) = outcome(rankduel_on(&database.url, &["verify"]));
        assert_eq!(code, Some(0), "{verified}{error}");
    }
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
            let error = refused(&database, arguments);
            let names_it = error.contains(&beside(&database, left).display().to_string());
            assert!(names_it && error.contains("is missing or empty"), "{error}");
        }
        assert!(!path.exists());
        remove(&beside(&database, left));
    }
    // an emptied file is none
    std::fs::write(path, "").expect("to write");
    std::fs::write(beside(&database, ".lock"), "1").expect("to write");
    refused(&database, &["verify"]);
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
    let error = refused(&database, &["serve", "--listen", "127.0.0.1:0"]);
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
    assert_eq!(client.feedback("search", &answer).await.json(200)["position"], 6);
    // a killed server leaves its lock file, and no lock
    process.signal("KILL");
    process.wait();
    let (_process, client) = serve(&database);
    assert_eq!(client.feedback("search", &answer).await.json(200)["status"], "duplicate");
}
