//! `kill -9` in the middle of a storm of feedback.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::storm::{Memory, Shared, acknowledged, position, send, storm};
use super::{answer_many, folded_from_the_start, serve, stop};
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady};

on_both_databases! {
    what_was_acknowledged_is_in_the_log_exactly_once
    policies_of_all_kinds_come_back_as_they_were
}

/// Send each of `answers` again, in one go after the other; what became of each.
async fn repeat(client: &Client, answers: &[(String, &'static str)]) -> Vec<Value> {
    let mut receipts = Vec::new();
    for items in answers.chunks(1000) {
        receipts.extend(send(client, "search", items).await.expect("an answer"));
    }
    receipts
}

/// The server is killed at rest, four times in a storm (as soon as it has begun, and later and
/// later), and at rest.
async fn what_was_acknowledged_is_in_the_log_exactly_once(database: TestDatabase) {
    let memory = Shared::default();
    let (process, client) = serve(&database);
    client.create(&steady("search", &["a", "b", "c"])).await;
    // a snapshot, so that a start has something to begin with
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
    assert!(acknowledged.len() >= 450 && !open.is_empty(), "there was a storm");
    assert_eq!(self_duels, 0);

    let (process, client) = serve(&database);
    // each acknowledged answer is where it was said to be
    let answers: Vec<_> =
        acknowledged.iter().map(|(id, (outcome, _))| (id.clone(), *outcome)).collect();
    for (receipt, (_, place)) in repeat(&client, &answers).await.iter().zip(acknowledged.values()) {
        assert_eq!((&receipt["status"], position(receipt)), (&json!("duplicate"), *place));
    }
    // what was not heard of is there or not, and now it is there once
    let unheard: Vec<_> = unheard.into_iter().collect();
    let mut places: BTreeSet<u64> = acknowledged.values().map(|(_, place)| *place).collect();
    for receipt in repeat(&client, &unheard).await {
        assert!(["recorded", "duplicate"].contains(&receipt["status"].as_str().expect("a status")));
        places.insert(position(&receipt));
    }
    // a duel that an earlier process issued is still a duel
    let open: Vec<_> = open.into_iter().map(|id| (id, "left")).collect();
    for receipt in repeat(&client, &open).await {
        assert_eq!(receipt["status"], "recorded");
        places.insert(position(&receipt));
    }
    // every place once, and nothing else in the log
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

/// The state of every policy is that of the log, however often its process was killed.
async fn policies_of_all_kinds_come_back_as_they_were(database: TestDatabase) {
    let names = ["d-ts-plus", "rucb", "scb", "scomp2"];
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
                    .create(&json!({"name": name, "rankers": ["a", "b", "c", "d"], "policy": policy, "ties": "coin"}))
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
