//! Bounds of the share of duels on which a ranker is shown.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::Client;
use crate::support::service::Server;

on_sqlite! {
    a_ranker_is_shown_within_its_bounds
    bounds_without_rankers_are_refused
}

fn search(shares: &Value) -> Value {
    json!({
        "name": "search", "rankers": ["a", "b", "c", "d"], "policy": {"kind": "uniform"},
        "conclude_at": "never", "shares": shares,
    })
}

/// The share of a thousand duels on which each ranker is shown.
async fn shown(server: &Client, rankers: &[&str]) -> Vec<f64> {
    let asked = json!({"count": 1000});
    let stock = server.post("/v1/experiments/search/next-duel", &asked).await.json(200);
    let duels = stock["duels"].as_array().expect("a list");
    let share = |ranker: &&str| {
        let has = |duel: &&Value| duel["left"] == **ranker || duel["right"] == **ranker;
        duels.iter().filter(has).count() as f64 / duels.len() as f64
    };
    rankers.iter().map(share).collect()
}

async fn a_ranker_is_shown_within_its_bounds(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    // without bounds, each is on 44 % of the duels
    let shares = json!({"a": {"floor": 0.8}, "b": {"cap": 0.1}, "c": {"floor": 0.2, "cap": 0.3}});
    let created = server.create(&search(&shares)).await;
    assert_eq!(created["shares"]["a"], json!({"floor": 0.8, "cap": 1.0}));
    let found = shown(&server, &["a", "b", "c"]).await;
    // within four standard deviations
    assert!(found[0] >= 0.75 && found[1] <= 0.14 && (0.15..=0.36).contains(&found[2]), "{found:?}");
    let retired = server.patch("search", &json!({"retire": "d"})).await;
    let problem = retired.problem(ProblemKind::RankersFixed);
    assert!(problem.to_string().contains("no `cap`"), "{problem}");
    server.patch("search", &json!({"enlist": "e"})).await.json(200);
    server.patch("search", &json!({"retire": "d"})).await.json(200);
    assert_eq!(shown(&server, &["d"]).await, [0.0]);
}

/// No policy can start without rankers, not to learn whether it allows bounds either.
async fn bounds_without_rankers_are_refused(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = json!({"name": "search", "rankers": [], "shares": {"a": {"cap": 0.5}}});
    server.refuses(&body, "/rankers").await;
}
