//! Requesting duels.

use std::collections::HashSet;

use rankduel::http::ProblemKind;
use rankduel_engine::clock::rfc3339;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::eventually;
use crate::support::client::steady;
use crate::support::service::{START_MS, Server};

on_both_databases! {
    requesting_a_duel_writes_nothing
    self_duels_are_flushed_to_the_log
}

on_sqlite! {
    a_duel_has_every_field_that_a_caller_needs
    every_order_and_self_duels_occur
    a_stock_of_duels_is_issued_at_once
}

async fn a_duel_has_every_field_that_a_caller_needs(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let rankers = ["a", "b", "c"];
    let mut body = json!({"name": "search", "rankers": rankers, "policy": {"kind": "uniform"}});
    body["duel_ttl_seconds"] = json!(90);
    server.create(&body).await;
    server.create(&steady("batches", &rankers)).await;
    server.clock.advance_ms(1234);
    let answered = server.pair("batches").await;
    let position = server.answer("batches", &answered, "left").await;
    let mut ids = HashSet::new();
    for (name, expires_at, state, batch) in [
        ("search", START_MS + 1234 + 90_000, 1, Value::Null),
        ("batches", START_MS + 1234 + 3_600_000, position, json!(1)),
    ] {
        for _ in 0..50 {
            let path = format!("/v1/experiments/{name}/next-duel");
            let answer = server.send("POST", &path, &[], Vec::new()).await;
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let duel = answer.json(200);
            let id = duel["duel_id"].as_str().expect("an id");
            assert!(
                id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
                "{id}"
            );
            assert!((40..=200).contains(&id.len()), "{id}");
            assert!(ids.insert(id.to_owned()), "{id} was issued twice");
            for side in ["left", "right"] {
                assert!(rankers.contains(&duel[side].as_str().expect("a ranker")), "{duel}");
            }
            let expected = json!({
                "duel_id": id,
                "experiment": name,
                "left": duel["left"],
                "right": duel["right"],
                "self_duel": duel["left"] == duel["right"],
                "expires_at": rfc3339(expires_at),
                "state": state,
                "batch": batch,
            });
            assert_eq!(duel, expected);
        }
    }
}

/// The uniform policy draws one of nine ordered pairs each time. The probability that one of them
/// is missing in 400 draws is at most 9 (8/9)^400 = 3e-20.
async fn every_order_and_self_duels_occur(database: TestDatabase) {
    let server = Server::running(
        &database,
        &json!({"name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}}),
    )
    .await;
    // The policy always selects the same pair in the same order; only the service swaps the sides.
    server.create(&steady("sides", &["a", "b"])).await;
    let mut seen = HashSet::new();
    for _ in 0..400 {
        let duel = server.next_duel("search").await;
        seen.insert((duel["left"].to_string(), duel["right"].to_string()));
    }
    assert_eq!(seen.len(), 9, "{seen:?}");
    let mut left = HashSet::new();
    for _ in 0..80 {
        left.insert(server.next_duel("sides").await["left"].to_string());
    }
    assert_eq!(left.len(), 2, "one of two sides is missing in 80 draws: 2^-79");
}

async fn requesting_a_duel_writes_nothing(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    for _ in 0..50 {
        assert_eq!(server.next_duel("search").await["state"], 1);
    }
    assert_eq!(server.position("search").await, 1);
    server.stop().await;
    assert_eq!(database.count("select count(*) from log").await, 1);
}

async fn self_duels_are_flushed_to_the_log(database: TestDatabase) {
    let server = Server::running(
        &database,
        &json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "uniform"}}),
    )
    .await;
    let mut shown = [0u64; 2];
    while shown.iter().sum::<u64>() < 20 {
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == true {
            shown[usize::from(duel["left"] == "b")] += 1;
        }
    }
    let standings = eventually("20 self-duels", async || {
        let standings = server.standings("search").await;
        (standings["self_duels"] == 20).then_some(standings)
    })
    .await;
    assert_eq!(standings["duels"], 0);
    for (row, shown) in standings["rankers"].as_array().expect("rows").iter().zip(shown) {
        assert_eq!(row["appearances"], 2 * shown);
    }
    // The outcome of a self-duel is accepted and changes no count.
    let duel = loop {
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == true {
            break duel;
        }
    };
    server.answer("search", &duel, "left").await;
    let after = server.standings("search").await;
    assert_eq!((&after["duels"], &after["wins"]), (&json!(0), &json!([[0, 0], [0, 0]])));

    // The last self-duels are written when the server stops.
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    assert_eq!(server.standings("search").await["self_duels"], 21);
}

async fn a_stock_of_duels_is_issued_at_once(database: TestDatabase) {
    let body = json!({"name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}});
    let server = Server::running(&database, &body).await;
    let path = "/v1/experiments/search/next-duel";
    let stock = async |count: u32| {
        let answer = server.post(path, &json!({"count": count})).await.json(200);
        answer["duels"].as_array().expect("a list").clone()
    };
    assert_eq!(stock(1).await.len(), 1);
    let duels = stock(1000).await;
    let ids: HashSet<_> = duels.iter().map(|duel| duel["duel_id"].to_string()).collect();
    assert_eq!((duels.len(), ids.len()), (1000, 1000));
    let one = server.next_duel("search").await;
    let fields =
        |duel: &Value| duel.as_object().expect("a duel").keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&duels[0]), fields(&one));
    let pair = duels.iter().find(|duel| duel["self_duel"] == false).expect("uniform pairs");
    server.answer("search", pair, "left").await;
    for wrong in [
        json!({"count": 0}),
        json!({"count": 1001}),
        json!({"count": 2, "unit": "u"}),
        json!({"count": 2, "rankings": {}}),
    ] {
        server.post(path, &wrong).await.problem_at(ProblemKind::InvalidRequest, "/count");
    }
}
