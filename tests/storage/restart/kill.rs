//! `kill -9` under heavy feedback load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::storm::{Memory, Shared, acknowledged, position, send, storm};
use super::{answer_many, folded_from_the_start, serve, stop};
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady};

on_both_databases! {
    acknowledged_answers_are_in_the_log_exactly_once
    policies_of_all_kinds_are_restored
}

/// Send each of `answers` again, in consecutive requests; returns the receipts.
async fn repeat(client: &Client, answers: &[(String, &'static str)]) -> Vec<Value> {
    let mut receipts = Vec::new();
    for items in answers.chunks(1000) {
        receipts.extend(send(client, "search", items).await.expect("an answer"));
    }
    receipts
}

/// The server is killed while idle, four times under load (right at the start, then later each
/// time), and while idle again.
async fn acknowledged_answers_are_in_the_log_exactly_once(database: TestDatabase) {
    let memory = Shared::default();
    let (process, client) = serve(&database);
    client.create(&steady("search", &["a", "b", "c"])).await;
    // A snapshot, so that the next start uses one.
    answer_many(&client, "search").await;
    let mut expected = client.standings("search").await["outcomes"].clone();
    eventually("a snapshot", async || {
        (database.count("select count(*) from snapshot").await > 0).then_some(())
    })
    .await;
    process.signal("KILL");
    process.wait();

    for enough in [1, 60, 200, 450] {
        let (process, client) = serve(&database);
        let callers = storm(&client, &["search"], &memory);
        acknowledged(&memory, enough).await;
        process.signal("KILL");
        process.wait();
        callers.join_all().await;
    }

    let Memory { acknowledged, unheard, open, self_duels } =
        Arc::into_inner(memory).expect("all callers have ended").into_inner().expect("a memory");
    assert!(acknowledged.len() >= 450 && !open.is_empty(), "there was too little load");
    assert_eq!(self_duels, 0);

    let (process, client) = serve(&database);
    // Each acknowledged answer is at its acknowledged position.
    let answers: Vec<_> =
        acknowledged.iter().map(|(id, (outcome, _))| (id.clone(), *outcome)).collect();
    for (receipt, (_, place)) in repeat(&client, &answers).await.iter().zip(acknowledged.values()) {
        assert_eq!((&receipt["status"], position(receipt)), (&json!("duplicate"), *place));
    }
    // Answers without a response may be in the log; after a repeat they are in it once.
    let unheard: Vec<_> = unheard.into_iter().collect();
    let mut places: BTreeSet<u64> = acknowledged.values().map(|(_, place)| *place).collect();
    for receipt in repeat(&client, &unheard).await {
        assert!(["recorded", "duplicate"].contains(&receipt["status"].as_str().expect("a status")));
        places.insert(position(&receipt));
    }
    // A duel that an earlier process issued is still valid.
    let open: Vec<_> = open.into_iter().map(|id| (id, "left")).collect();
    for receipt in repeat(&client, &open).await {
        assert_eq!(receipt["status"], "recorded");
        places.insert(position(&receipt));
    }
    // Every position once, and nothing else in the log.
    let total = 11_000 + acknowledged.len() + unheard.len() + open.len();
    assert_eq!(places, (11_001..=total as u64).collect());
    assert_eq!(database.count("select count(*) from log").await, total as i64);

    let mut counted = BTreeMap::new();
    for outcome in answers.iter().chain(&unheard).chain(&open).map(|(_, outcome)| *outcome) {
        *counted.entry(outcome).or_insert(0) += 1;
    }
    for (outcome, count) in counted {
        expected[outcome] = json!(expected[outcome].as_u64().expect("a count") + count);
    }
    let standings = client.standings("search").await;
    assert_eq!(standings["outcomes"], expected);
    assert_eq!((&standings["position"], &standings["duels"]), (&json!(total), &json!(total)));
    process.signal("KILL");
    process.wait();
    assert_eq!(folded_from_the_start(&database, "search").await, standings);
}

/// After any number of kills, the state of every policy matches the log.
async fn policies_of_all_kinds_are_restored(database: TestDatabase) {
    let names = ["d-ts-plus", "ccb", "scb", "scomp2"];
    let memory = Shared::default();
    for (round, enough) in (0..).zip([40, 150]) {
        let (process, client) = serve(&database);
        if round == 0 {
            for name in names {
                let mut policy = json!({"kind": name});
                if name == "scomp2" {
                    policy["horizon"] = json!(2000);
                }
                client
                    .create(&json!({"name": name, "rankers": ["a", "b", "c", "d"], "policy": policy, "ties": "coin",
                        "conclude_at": "never"}))
                    .await;
            }
        }
        let callers = storm(&client, &names, &memory);
        acknowledged(&memory, enough).await;
        process.signal("KILL");
        process.wait();
        callers.join_all().await;
    }
    let (process, client) = serve(&database);
    let mut before = Vec::new();
    for name in names {
        before.push(client.standings(name).await);
    }
    process.signal("KILL");
    process.wait();
    let mut positions = 0;
    for (name, before) in names.iter().zip(&before) {
        assert_eq!(&folded_from_the_start(&database, name).await, before);
        positions += before["position"].as_i64().expect("a position");
    }
    assert_eq!(database.count("select count(*) from log").await, positions);
    assert!(positions >= 150);
    stop(serve(&database).0);
}
