//! The maintenance commands of a database: export, import, prune, verify. Each runs as a process.

mod pages;
mod pruning;
mod refused;
mod transfer;
mod verifying;

use crate::events::{folded, snapshot};
use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::server::{outcome, rankduel_on};
use crate::support::service::Server;
use serde_json::{Value, json};

/// A time at which every issued duel has expired by now: 2020-01-01.
const LONG_AGO_MS: i64 = 1_577_836_800_000;

/// The exit code, standard output and standard error of a command.
fn run(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    outcome(rankduel_on(&database.url, arguments))
}

/// Run a command that must succeed, and return its standard output.
#[track_caller]
fn succeed(database: &TestDatabase, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = run(database, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// A database with two experiments, `search` (concluded) and `young` (running), whose logs contain
/// events of every kind, and a snapshot in the middle of `search`. Returns the last standings of
/// `search`.
async fn filled(database: &TestDatabase) -> Value {
    let server = Server::start(database.store().await).await;
    server.clock.advance_ms(LONG_AGO_MS - crate::support::service::START_MS);
    server
        .create(&json!({"name": "search", "rankers": ["a", "b", "c"], "ties": "half", "seed": 7,
        "conclude_at": "never", "policy": {"kind": "pcomp", "horizon": 400, "batches": 3}}))
        .await;
    server.create(&steady("young", &["a", "b"])).await;
    for number in 0..60 {
        let duel = server.pair("search").await;
        let outcome = ["left", "right", "tie", "left", "none"][number % 5];
        server.answer("search", &duel, outcome).await;
        server.clock.advance_ms(number as i64 % 3);
    }
    let missing = server.missing_results("search").await;
    server.post("/v1/experiments/search/batch/results", &missing).await.json(200);
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    server.patch("search", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    let duel = server.pair("young").await;
    server.answer("young", &duel, "left").await;
    let standings = server.standings("search").await;
    server.stop().await;

    let store = database.connect().await;
    let (record, fold) = folded(&store, "search", 30).await;
    let snapshot = snapshot(&record, &fold, LONG_AGO_MS);
    store.save_snapshot(&snapshot).await.expect("a snapshot");
    store.close().await;
    standings
}

/// Copy the tables, before they are damaged.
async fn keep(database: &TestDatabase) {
    for table in ["experiment", "log", "snapshot"] {
        let copy = format!("create table {table}_kept as select * from {table}");
        database.execute_text(format!("drop table if exists {table}_kept; {copy}")).await;
    }
}

/// Bring back what was kept, except added and removed experiments.
async fn restore(database: &TestDatabase) {
    database
        .execute(
            "delete from log; delete from snapshot;
             update experiment set head = kept.head, version = kept.version, status = kept.status,
                 spec = kept.spec, pruned_to = kept.pruned_to, winner = kept.winner,
                 archived_at_ms = kept.archived_at_ms
                 from experiment_kept as kept where kept.id = experiment.id;
             insert into log select * from log_kept;
             insert into snapshot select * from snapshot_kept;",
        )
        .await;
}

/// The standings of `search` at a newly started server.
async fn standings(database: &TestDatabase) -> Value {
    let server = Server::start(database.connect().await).await;
    let standings = server.standings("search").await;
    server.stop().await;
    standings
}
