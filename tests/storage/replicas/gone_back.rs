//! The database goes back under running servers: an old backup is restored, or a standby that
//! lagged takes over. The servers report the loss and fold the existing log again.

use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::Snapshot;

use super::{NEVER_LOOKS, serve};
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady};
use crate::support::server::Process;

on_both_databases! {
    polling_detects_the_loss
    appending_detects_the_loss
    a_snapshot_beyond_the_log_is_not_used
}

/// Removes the end of the log, after position 6.
const GO_BACK: &str = "delete from log where position > 6; update experiment set head = 6;";

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
    process.signal("TERM");
    let (code, log) = process.wait();
    assert_eq!(code, Some(0), "{log}");
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
    answer(&client, 10, "left", 0).await;
    database.execute(GO_BACK).await;
    eventually("the loss report", async || (regressions(&client).await > 0).then_some(())).await;
    assert_eq!(client.position("search").await, 6);
    answer(&client, 5, "none", 6).await;
    assert_matches_the_log(&database, process, &client, 11).await;
}

async fn appending_detects_the_loss(database: TestDatabase) {
    let (process, client) = serve(&database, &NEVER_LOOKS);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 0).await;
    database.execute(GO_BACK).await;
    assert_eq!(client.position("search").await, 10, "the loss is not detected yet");
    answer(&client, 5, "none", 6).await;
    assert_matches_the_log(&database, process, &client, 11).await;
}

/// The snapshot is used neither when the loss is detected, nor when the log has grown past it.
async fn a_snapshot_beyond_the_log_is_not_used(database: TestDatabase) {
    let (process, client) = serve(&database, &["--log", "error"]);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 0).await;
    process.signal("TERM");
    assert_eq!(process.wait().0, Some(0));
    let store = database.connect().await;
    let record = store.experiment("search").await.expect("a store").expect("an experiment");
    let spec = ExperimentSpec::read(&record.spec).expect("a spec");
    let mut fold = Fold::start(&spec, record.seed, record.created_at);
    for entry in store.read(record.id, 0, 10).await.expect("the log") {
        fold.apply(&entry).expect("an entry that follows");
    }
    let snapshot = Snapshot {
        experiment: record.id,
        position: 10,
        format: fold.format(),
        state: fold.save(),
        created_at: 0,
    };
    store.save_snapshot(&snapshot).await.expect("a store");
    assert_eq!(database.count("select max(position) from snapshot").await, 10);
    database.execute(GO_BACK).await;

    let (process, client) = serve(&database, &["--log", "error"]);
    assert_eq!(client.position("search").await, 6);
    assert_eq!(database.count("select max(position) from snapshot").await, 6);
    // A process that has not detected the loss yet saves its snapshot.
    store.save_snapshot(&snapshot).await.expect("a store");
    assert_eq!(database.count("select max(position) from snapshot").await, 6);
    store.close().await;
    answer(&client, 6, "none", 6).await;
    assert_matches_the_log(&database, process, &client, 12).await;
}
