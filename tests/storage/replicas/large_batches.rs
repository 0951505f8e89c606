//! The results of a batch with many pairs are folded apart from the state that requests read, and
//! give the state that folding the log entry by entry gives.

use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::until;
use crate::support::service::{START_MS, Server};

on_both_databases! {
    results_of_many_pairs_give_the_state_of_the_log
}

const RESULTS: &str = "/v1/experiments/search/batch/results";
/// With so many rankers a batch has 1128 pairs.
const RANKERS: usize = 48;

/// Results of every pair of the open batch: the first of two rankers wins three of four.
async fn results(server: &Server) -> Value {
    let part = async |offset: usize| {
        let path = format!("/v1/experiments/search/batch?offset={offset}");
        server.get(&path).await.json(200)
    };
    let (first, rest) = (part(0).await, part(1000).await);
    let pairs = [&first, &rest].map(|part| part["pairs"].as_array().expect("pairs").clone());
    let row = |pair: &Value| {
        let open =
            pair["needed"].as_u64().expect("a count") - pair["answered"].as_u64().expect("a count");
        let losses = open / 4;
        json!({
            "left": pair["left"], "right": pair["right"],
            "left_wins": open - losses, "right_wins": losses, "ties": 0,
        })
    };
    json!({"batch": first["number"], "results": pairs.concat().iter().map(row).collect::<Vec<_>>()})
}

async fn results_of_many_pairs_give_the_state_of_the_log(database: TestDatabase) {
    let servers =
        [Server::start(database.store().await).await, Server::start(database.store().await).await];
    let ids: Vec<String> = (0..RANKERS).map(|number| format!("ranker-{number:02}")).collect();
    let policy = json!({"kind": "pcomp", "horizon": 1_000_000, "batches": 6});
    let search = json!({
        "name": "search", "rankers": ids, "seed": 3, "policy": policy, "conclude_at": "never",
    });
    servers[0].create(&search).await;
    // an answer before each of the results
    for _ in 0..3 {
        let [server, other] = &servers;
        let duel = server.pair("search").await;
        server.answer("search", &duel, "left").await;
        let results = results(server).await;
        let posted = server.post(RESULTS, &results).await.json(200);
        assert_eq!(posted["status"], "recorded");
        let position = server.position("search").await;
        until("the results at the other server", async || {
            other.position("search").await == position
        })
        .await;
        assert_eq!(other.post(RESULTS, &results).await.json(200)["status"], "duplicate");
    }

    let store = database.connect().await;
    let record = store.experiment("search").await.expect("a store").expect("an experiment");
    let spec = ExperimentSpec::read(&record.spec).expect("a spec");
    let mut fold = Fold::start(&spec, record.seed, record.created_at);
    let mut batches = vec![fold.run().policy().batch()];
    for entry in store.read(record.id, 0, u32::MAX).await.expect("the log") {
        fold.apply(&entry).expect("an entry that follows");
        batches.push(fold.run().policy().batch());
    }
    batches.dedup();
    assert_eq!(batches.len(), 4, "three batches have ended: {batches:?}");
    for server in servers {
        let loaded = server.service.peek("search").expect("in memory");
        let state = loaded.snapshot(START_MS).expect("a state").state;
        assert!(state == fold.save(), "the state is not that of the log");
        server.stop().await;
    }
}
