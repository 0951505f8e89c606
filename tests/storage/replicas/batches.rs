//! A batch opens and closes once, whatever the number of servers that issue its comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use rankduel::service::ServiceSettings;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::TestDatabase;
use crate::support::client::eventually;
use crate::support::service::{Server, Settings};

on_both_databases! {
    a_batch_opens_and_closes_once
}

type Pair = (u64, String, String);

/// The issued comparisons by batch and pair, and the order of batches at each server.
#[derive(Default)]
struct HandedOut {
    comparisons: BTreeMap<Pair, u64>,
    needed: BTreeMap<Pair, u64>,
}

fn pair(batch: &serde_json::Value, one: &serde_json::Value, other: &serde_json::Value) -> Pair {
    let mut ids = [one, other].map(|id| id.as_str().expect("an id").to_owned());
    ids.sort();
    let [one, other] = ids;
    (batch.as_u64().expect("a batch"), one, other)
}

async fn a_batch_opens_and_closes_once(database: TestDatabase) {
    const SERVERS: usize = 3;
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        let settings = Settings { service: ServiceSettings::default(), ..Settings::default() };
        servers.push(Server::with(database.store().await, settings).await);
    }
    servers[0]
        .create(&json!({
            "name": "search", "rankers": ["a", "b", "c", "d", "e"], "seed": 3,
            "policy": {"kind": "pcomp", "horizon": 1500, "batches": 5}, "conclude_at": "never",
        }))
        .await;
    let handed_out = Arc::new(Mutex::new(HandedOut::default()));
    let mut callers = JoinSet::new();
    for caller in 0..12 {
        let (from, to) =
            (servers[caller % SERVERS].client(), servers[(caller / 2) % SERVERS].client());
        let handed_out = Arc::clone(&handed_out);
        callers.spawn(async move {
            loop {
                let batch = from.get("/v1/experiments/search/batch").await.json(200);
                if batch["number"].is_null() {
                    return;
                }
                {
                    let mut known = handed_out.lock().expect("a memory");
                    for row in batch["pairs"].as_array().expect("pairs") {
                        let key = pair(&batch["number"], &row["left"], &row["right"]);
                        let needed = row["needed"].as_u64().expect("a count");
                        let before = known.needed.insert(key, needed);
                        assert!(
                            before.is_none_or(|before| before == needed),
                            "a batch needs the same count everywhere"
                        );
                    }
                }
                let lease = from
                    .post("/v1/experiments/search/batch/lease", &json!({"count": 7}))
                    .await
                    .json(200);
                for duel in lease["duels"].as_array().expect("duels") {
                    let key = pair(&duel["batch"], &duel["left"], &duel["right"]);
                    *handed_out.lock().expect("a memory").comparisons.entry(key).or_default() += 1;
                    // The first ranker in alphabetical order wins two of three.
                    let left_first = duel["left"].as_str() < duel["right"].as_str();
                    let position = duel["state"].as_u64().expect("a position") as usize;
                    let wins = !(caller + position).is_multiple_of(3);
                    to.answer("search", duel, if left_first == wins { "left" } else { "right" })
                        .await;
                }
            }
        });
    }
    callers.join_all().await;
    let handed_out =
        Arc::into_inner(handed_out).expect("all have ended").into_inner().expect("a memory");

    // Every server reaches the same end of the log.
    let head = database.count("select head from experiment").await as u64;
    let mut ends = Vec::new();
    for server in &servers {
        eventually("the whole log", async || {
            (server.position("search").await == head).then_some(())
        })
        .await;
        ends.push(server.standings("search").await);
    }
    assert!(ends.windows(2).all(|pair| pair[0] == pair[1]));

    // By the log, each batch opened once, in order.
    let store = database.connect().await;
    let record = store.experiment("search").await.expect("a store").expect("an experiment");
    let spec = ExperimentSpec::read(&record.spec).expect("a spec");
    let mut fold = Fold::start(&spec, record.seed, record.created_at);
    let mut opened = vec![fold.policy().batch()];
    for entry in store.read(record.id, 0, u32::MAX).await.expect("the log") {
        fold.apply(&entry).expect("an entry that follows");
        if Some(&fold.policy().batch()) != opened.last() {
            opened.push(fold.policy().batch());
        }
    }
    let last = opened.len() as u32 - 1;
    let in_order: Vec<_> = (1..=last).map(Some).chain([None]).collect();
    assert_eq!(opened, in_order);
    assert!(last >= 2, "there were batches: {opened:?}");

    // No server issues more than the batch needs, so three servers issue at most three times that.
    let batches: BTreeSet<u64> =
        handed_out.comparisons.keys().map(|(batch, _, _)| *batch).collect();
    assert_eq!(batches.len() as u32, last);
    for (key, count) in &handed_out.comparisons {
        let needed = handed_out.needed[key];
        assert!(*count <= needed * SERVERS as u64, "{key:?}: {count} of {needed} were issued");
    }
    for server in servers {
        server.stop().await;
    }
}
