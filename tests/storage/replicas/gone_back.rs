//! The database goes back under running servers: an old backup is restored, or a standby that
//! lagged takes over. The servers report the loss and fold the existing log again.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use super::{NEVER_LOOKS, serve};
use crate::events::{folded, snapshot};
use crate::support::client::{Answer, Client, steady, until, with};
use crate::support::server::{Process, outcome, rankduel_on};
use crate::support::{Kind, TestDatabase};

on_both_databases! {
    polling_detects_the_loss
    appending_detects_the_loss
    a_snapshot_beyond_the_log_is_not_used
    clicks_count_although_the_log_lost_their_page
    a_lost_experiment_is_dropped_by_polling
    a_lost_experiment_is_dropped_by_appending
}

/// Removes the end of the log, after position 7.
const GO_BACK: &str = "delete from log where position > 7; update experiment set head = 7;";

/// Answer `count` duels with this outcome, at the positions after `after`.
async fn answer(client: &Client, count: u64, outcome: &str, after: u64) {
    for number in 1..=count {
        let duel = client.next_duel("search").await;
        assert_eq!(client.answer("search", &duel, outcome).await, after + number);
    }
}

async fn regressions(client: &Client) -> u64 {
    let metrics = client.get("/metrics").await.text();
    let line =
        metrics.lines().find_map(|line| line.strip_prefix("rankduel_log_regressions_total "));
    line.expect("a counter").parse().expect("a number")
}

/// The server's standings equal those of a server that folds the log from its start, and its own
/// log reports the loss once.
async fn assert_matches_the_log(
    database: &TestDatabase,
    process: Process,
    client: &Client,
    position: u64,
) {
    let standings = client.standings("search").await;
    assert_eq!(standings["position"], position);
    assert_eq!(regressions(client).await, 1);
    let log = process.stop();
    assert_eq!(log.matches("THE DATABASE HAS LOST ACKNOWLEDGED OUTCOMES").count(), 1, "{log}");
    // With the existing snapshots, and without any.
    for statement in ["select 1", "delete from snapshot"] {
        database.execute(statement).await;
        let (_anew, anew) = serve(database, &[]);
        assert_eq!(standings, anew.standings("search").await, "after {statement}");
        assert_eq!(regressions(&anew).await, 0);
    }
}

async fn polling_detects_the_loss(database: TestDatabase) {
    let (process, client) =
        serve(&database, &["--no-listen", "--poll-milliseconds", "20", "--log", "error"]);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 1).await;
    database.execute(GO_BACK).await;
    until("the loss report", async || regressions(&client).await > 0).await;
    assert_eq!(client.position("search").await, 7);
    answer(&client, 5, "none", 7).await;
    assert_matches_the_log(&database, process, &client, 12).await;
}

async fn appending_detects_the_loss(database: TestDatabase) {
    let (process, client) = serve(&database, &NEVER_LOOKS);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 1).await;
    database.execute(GO_BACK).await;
    assert_eq!(client.position("search").await, 11, "the loss is not detected yet");
    answer(&client, 5, "none", 7).await;
    assert_matches_the_log(&database, process, &client, 12).await;
}

/// The snapshot is used neither when the loss is detected, nor when the log has grown past it.
async fn a_snapshot_beyond_the_log_is_not_used(database: TestDatabase) {
    let (process, client) = serve(&database, &["--log", "error"]);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 1).await;
    process.stop();
    let store = database.connect().await;
    let (record, fold) = folded(&store, "search", 11).await;
    let snapshot = snapshot(&record, &fold, 0);
    store.save_snapshot(&snapshot).await.expect("a store");
    assert_eq!(database.count("select max(position) from snapshot").await, 11);
    database.execute(GO_BACK).await;

    let (process, client) = serve(&database, &["--log", "error"]);
    assert_eq!(client.position("search").await, 7);
    assert_eq!(database.count("select max(position) from snapshot").await, 7);
    // A process that has not detected the loss yet saves its snapshot.
    store.save_snapshot(&snapshot).await.expect("a store");
    assert_eq!(database.count("select max(position) from snapshot").await, 7);
    store.close().await;
    answer(&client, 6, "none", 7).await;
    assert_matches_the_log(&database, process, &client, 13).await;
}

/// Removes every experiment, as a failover to a standby does that had none of it.
const LOSE: &str = "delete from log; delete from snapshot; delete from experiment;";

/// Its duels count for no experiment that is created under its name, and no further ones are
/// issued.
async fn drops_a_lost_experiment(
    database: &TestDatabase,
    flags: &[&str],
    detect: impl AsyncFnOnce(&Client, &Value),
) {
    let (process, client) = serve(database, flags);
    client.create(&steady("search", &["old-a", "old-b"])).await;
    let kept = client.pair("search").await;
    answer(&client, 3, "left", 1).await;
    database.execute(LOSE).await;
    detect(&client, &kept).await;
    assert_eq!(regressions(&client).await, 1);
    let path = "/v1/experiments/search";
    client.get(path).await.problem(ProblemKind::ExperimentNotFound);
    client
        .post(&format!("{path}/next-duel"), &json!({}))
        .await
        .problem(ProblemKind::ExperimentNotFound);

    let other = match database.kind {
        Kind::Sqlite => None,
        Kind::Postgres => Some(serve(database, &[])),
    };
    let servers: Vec<_> = other.iter().map(|(_, other)| other).chain([&client]).collect();
    servers[0].create(&steady("search", &["new-a", "new-b"])).await;
    let body = json!({"duel_id": kept["duel_id"], "outcome": "left"});
    for server in servers {
        server.feedback("search", &body).await.problem(ProblemKind::InvalidDuel);
        let duel = server.pair("search").await;
        assert!(duel["left"].as_str().is_some_and(|it| it.starts_with("new-")), "{duel}");
        assert_eq!(server.position("search").await, 1);
    }
    let log = process.stop();
    assert_eq!(log.matches("the experiment is gone").count(), 1, "{log}");
}

async fn a_lost_experiment_is_dropped_by_polling(database: TestDatabase) {
    let flags = ["--no-listen", "--poll-milliseconds", "20", "--log", "error"];
    drops_a_lost_experiment(&database, &flags, async |client, _| {
        until("the loss report", async || regressions(client).await > 0).await;
    })
    .await;
}

async fn a_lost_experiment_is_dropped_by_appending(database: TestDatabase) {
    drops_a_lost_experiment(&database, &NEVER_LOOKS, async |client, kept| {
        let body = json!({"duel_id": kept["duel_id"], "outcome": "left"});
        client.feedback("search", &body).await.problem(ProblemKind::ExperimentNotFound);
    })
    .await;
}

/// A page with one of these clicks on it, which do not settle it.
async fn clicked_page(client: &Client, name: &str) -> Value {
    let duel = client.pair(name).await;
    let body = json!({"duel_id": duel["duel_id"], "left": ["l"], "right": ["r"], "length": 2});
    let path = format!("/v1/experiments/{name}/interleave");
    let page = client.post(&path, &body).await.json(200);
    assert_eq!(click(client, name, &page, "l", false).await.json(200)["status"], "recorded");
    page
}

async fn click(client: &Client, name: &str, page: &Value, on: &str, last: bool) -> Answer {
    let body = json!({"duel_id": page["duel_id"], "clicks": [on], "final": last});
    client.feedback(name, &body).await
}

/// The server's memory has pages, a method and positions that the log has lost. Clicks that it
/// acknowledges count; an entry that rests on lost ones alone does not, and harms nothing.
async fn clicks_count_although_the_log_lost_their_page(database: TestDatabase) {
    let (process, client) = serve(&database, &NEVER_LOOKS);
    for (name, settle_after_seconds) in [("search", 600), ("timed", 1), ("changed", 600)] {
        let body =
            with(steady(name, &["a", "b"]), json!({"settle_after_seconds": settle_after_seconds}));
        client.create(&body).await;
        for _ in 0..6 {
            let duel = client.pair(name).await;
            client.answer(name, &duel, "left").await;
        }
    }
    let before = "select spec from experiment where name = 'changed'";
    let before = database.texts(before.into()).await;
    let method = json!({"interleaving": {"kind": "balanced"}});
    client.patch("changed", &method).await.json(200);
    let changed = [clicked_page(&client, "changed").await, clicked_page(&client, "changed").await];
    let page = clicked_page(&client, "search").await;
    clicked_page(&client, "timed").await;
    database.execute(GO_BACK).await;
    let spec = before[0].as_deref().expect("a spec");
    let back = format!("update experiment set spec = '{spec}', version = 1 where name = 'changed'");
    database.execute_text(back).await;

    let receipt = click(&client, "search", &page, "r", true).await.json(200);
    assert_eq!(receipt, json!({"status": "recorded", "position": 8}));
    assert_eq!(client.standings("search").await["duels"], 7, "the clicks count");
    // As the server's memory still has the method, it does not refuse this.
    let receipt = click(&client, "changed", &changed[0], "r", true).await.json(200);
    assert_eq!(receipt, json!({"status": "recorded", "position": 8}));
    assert_eq!(client.standings("changed").await["duels"], 6, "nobody knows the method");
    let again = click(&client, "changed", &changed[1], "r", true).await;
    again.problem(ProblemKind::InvalidDuel);
    until("the settling of a lost page", async || {
        let settled = "select count(*) from log where detail like '%settled%'";
        database.count(settled).await > 0
    })
    .await;
    assert_eq!(client.standings("timed").await["duels"], 6);
    let duel = client.pair("timed").await;
    assert_eq!(client.answer("timed", &duel, "left").await, 9, "it is served");

    process.stop();
    let run = |arguments: &[&str]| {
        let (code, stdout, stderr) = outcome(rankduel_on(&database.url, arguments));
        assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
        stdout
    };
    let verified = run(&["verify"]);
    let remark = "1 answers, the first at position 8, rest on entries that the log has lost";
    assert_eq!(verified.matches(remark).count(), 2, "{verified}");
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["search", "timed", "changed"] {
        let file = folder.path().join(name).display().to_string();
        run(&["export", name, "--out", &file]);
        run(&["import", &file, "--as", &format!("{name}-again")]);
    }
}
