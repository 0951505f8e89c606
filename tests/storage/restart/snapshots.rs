//! How a start uses snapshots.

use dueling_bandits::Answer;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::events::Event;
use rankduel_store::{ExperimentRecord, SharedStore, Snapshot};
use serde_json::Value;

use super::{answer_many, serve};
use crate::support::TestDatabase;
use crate::support::client::{steady, until};

on_both_databases! {
    a_start_uses_the_snapshot
    an_unreadable_snapshot_is_ignored
}

struct Kept {
    store: SharedStore,
    record: ExperimentRecord,
    spec: ExperimentSpec,
    snapshot: Snapshot,
    standings: Value,
}

/// A database with a long log and a snapshot, and the last standings of the server.
async fn kept(database: &TestDatabase) -> Kept {
    let (process, client) = serve(database);
    client.create(&steady("search", &["a", "b", "c"])).await;
    answer_many(&client, "search").await;
    until("a snapshot", async || database.count("select count(*) from snapshot").await > 0).await;
    let standings = client.standings("search").await;
    process.stop();
    let store = database.connect().await;
    let record = store.experiment("search").await.expect("a store").expect("an experiment");
    let spec: ExperimentSpec = serde_json::from_str(&record.spec).expect("a spec");
    let format = Fold::start(&spec, record.seed, 0).format();
    let snapshot =
        store.newest_snapshot(record.id, format).await.expect("a store").expect("a snapshot");
    assert!(snapshot.position >= 10_000);
    Kept { store, record, spec, snapshot, standings }
}

/// Replace all snapshots by this one, and return the standings of a server that starts with it.
async fn start_with(database: &TestDatabase, kept: &Kept, snapshot: Snapshot) -> Value {
    database.execute("delete from snapshot").await;
    kept.store.save_snapshot(&snapshot).await.expect("a snapshot that is kept");
    let (process, client) = serve(database);
    let standings = client.standings("search").await;
    // The server also continues.
    let duel = client.next_duel("search").await;
    assert_eq!((&duel["batch"], &duel["state"]), (&1.into(), &standings["position"]));
    process.stop();
    standings
}

/// The snapshot contradicts the log to show that it is used: `a` or `b` has won everything.
async fn a_start_uses_the_snapshot(database: TestDatabase) {
    let kept = kept(&database).await;
    let same = start_with(&database, &kept, kept.snapshot.clone()).await;
    assert_eq!(same, kept.standings);

    let mut fold = Fold::start(&kept.spec, kept.record.seed, kept.record.created_at);
    let log =
        kept.store.read(kept.record.id, 0, kept.snapshot.position as u32).await.expect("the log");
    for mut entry in log {
        if let Event::Outcome(outcome) = &mut entry.event {
            outcome.answer = Answer::First;
        }
        fold.apply(&entry).expect("the next entry");
    }
    let other = Snapshot { state: fold.save(), ..kept.snapshot.clone() };
    let standings = start_with(&database, &kept, other).await;
    assert_eq!(standings["position"], kept.standings["position"]);
    assert_ne!(standings["wins"], kept.standings["wins"]);
    assert_eq!(standings["leaders"], serde_json::json!(["a"]));
}

async fn an_unreadable_snapshot_is_ignored(database: TestDatabase) {
    let kept = kept(&database).await;
    let good = &kept.snapshot;
    let middle = good.state.len() / 2;
    let poisoned = |at: usize| {
        let mut state = good.state.clone();
        state[at] ^= 1;
        state
    };
    for (what, snapshot) in [
        ("a changed byte", Snapshot { state: poisoned(middle), ..good.clone() }),
        ("a changed first byte", Snapshot { state: poisoned(0), ..good.clone() }),
        ("half of it", Snapshot { state: good.state[..middle].to_vec(), ..good.clone() }),
        ("nothing", Snapshot { state: vec![], ..good.clone() }),
        ("nonsense", Snapshot { state: vec![0x5a; 5000], ..good.clone() }),
        ("another position", Snapshot { position: good.position - 1, ..good.clone() }),
        (
            "an unknown layout",
            Snapshot { format: good.format + 1, state: vec![1, 2, 3], ..good.clone() },
        ),
    ] {
        assert_eq!(start_with(&database, &kept, snapshot).await, kept.standings, "{what}");
    }
}
