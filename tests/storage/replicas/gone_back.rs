//! The database goes back under servers that are running: an old backup, a standby that was behind.
//! They say so, and fold anew what there is.

use rankduel::engine::experiment_spec::ExperimentSpec;
use rankduel::engine::fold::Fold;
use rankduel::store::Snapshot;

use super::{NEVER_LOOKS, serve};
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady};
use crate::support::server::Process;

on_both_databases! {
    looking_finds_it
    appending_finds_it
    a_snapshot_of_what_is_gone_is_not_used
}

/// The log's end is gone: what comes after position 6.
const GO_BACK: &str = "delete from log where position > 6; update experiment set head = 6;";

/// Answer so many duels with this, at the positions that follow on `after`.
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

/// What the server says is what one says that folds the log from its start, and its log has the
/// loss once.
async fn says_what_is_there(
    database: &TestDatabase,
    process: Process,
    client: &Client,
    position: u64,
) {
    let standings = client.standings("search").await;
    assert_eq!(standings["position"], position);
    assert_eq!(regressions(client).await, 1);
    process.signal("TERM");
    let (code, said) = process.wait();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("THE DATABASE HAS LOST ACKNOWLEDGED OUTCOMES").count(), 1, "{said}");
    // with the snapshots that there are, and without
    for statement in ["select 1", "delete from snapshot"] {
        database.execute(statement).await;
        let (_anew, anew) = serve(database, &[]);
        assert_eq!(standings, anew.standings("search").await, "after {statement}");
        assert_eq!(regressions(&anew).await, 0);
    }
}

async fn looking_finds_it(database: TestDatabase) {
    let (process, client) =
        serve(&database, &["--no-listen", "--poll-milliseconds", "20", "--log", "error"]);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 0).await;
    database.execute(GO_BACK).await;
    eventually("a sign of the loss", async || (regressions(&client).await > 0).then_some(())).await;
    assert_eq!(client.position("search").await, 6);
    answer(&client, 5, "none", 6).await;
    says_what_is_there(&database, process, &client, 11).await;
}

async fn appending_finds_it(database: TestDatabase) {
    let (process, client) = serve(&database, &NEVER_LOOKS);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer(&client, 10, "left", 0).await;
    database.execute(GO_BACK).await;
    assert_eq!(client.position("search").await, 10, "nothing has shown it yet");
    answer(&client, 5, "none", 6).await;
    says_what_is_there(&database, process, &client, 11).await;
}

/// Neither when it is found, nor when the log has grown past it.
async fn a_snapshot_of_what_is_gone_is_not_used(database: TestDatabase) {
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
    // a process that has not noticed yet
    store.save_snapshot(&snapshot).await.expect("a store");
    assert_eq!(database.count("select max(position) from snapshot").await, 6);
    store.close().await;
    answer(&client, 6, "none", 6).await;
    says_what_is_there(&database, process, &client, 12).await;
}
