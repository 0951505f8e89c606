//! SIGTERM under load.

use std::sync::Arc;

use rankduel_store::events::{ControlEvent, Event};
use serde_json::json;

use super::storm::{Memory, Shared, acknowledged, position, send, storm};
use super::{folded_from_the_start, serve, stop};
use crate::support::TestDatabase;
use crate::support::client::steady;

on_both_databases! {
    a_stop_under_load_loses_nothing
}

async fn a_stop_under_load_loses_nothing(database: TestDatabase) {
    let memory = Shared::default();
    let (process, client) = serve(&database);
    client.create(&steady("search", &["a", "b", "c"])).await;
    client
        .create(&json!({"name": "live", "rankers": ["a", "b"], "policy": {"kind": "uniform"},
            "conclude_at": "never"}))
        .await;
    let searching = storm(&client, &["search"], &memory);
    let alone = Shared::default();
    let living = storm(&client, &["live"], &alone);
    acknowledged(&memory, 150).await;
    acknowledged(&alone, 150).await;
    stop(process);
    searching.join_all().await;
    living.join_all().await;

    let Memory { acknowledged, .. } =
        Arc::into_inner(memory).expect("ended").into_inner().expect("a memory");
    let answers: Vec<_> =
        acknowledged.iter().map(|(id, (outcome, _))| (id.clone(), *outcome)).collect();
    let (process, client) = serve(&database);
    for (items, places) in
        answers.chunks(500).zip(acknowledged.values().collect::<Vec<_>>().chunks(500))
    {
        let receipts = send(&client, "search", items).await.expect("an answer");
        for (receipt, (_, place)) in receipts.iter().zip(places) {
            assert_eq!((&receipt["status"], position(receipt)), (&json!("duplicate"), *place));
        }
    }

    // Every self-duel that was shown is in the log, although none is acknowledged. Those on their
    // way to a disconnected caller may be there, too.
    let shown = alone.lock().expect("a memory").self_duels;
    assert!(shown > 0);
    let store = database.connect().await;
    let record = store.experiment("live").await.expect("a store").expect("an experiment");
    let mut logged = 0;
    for entry in store.read(record.id, 0, 100_000).await.expect("its log") {
        if let Event::Control(ControlEvent::SelfDuels { counts, .. }) = entry.event {
            logged += counts.iter().map(|(_, count)| count).sum::<u64>();
        }
    }
    assert!((shown..=shown + 8).contains(&logged), "{logged} of {shown} self-duels are in the log");

    let standings = client.standings("live").await;
    assert_eq!(standings["self_duels"], logged);
    stop(process);
    assert_eq!(folded_from_the_start(&database, "live").await, standings);
}
