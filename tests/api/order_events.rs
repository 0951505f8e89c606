//! Orders as User Behavior Insights events.

use rankduel_engine::clock::rfc3339;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::with;
use crate::support::service::{START_MS, Server};

on_both_databases! {
    an_event_with_the_name_of_orders_is_an_order
    without_decide_by_it_is_ignored
}

/// A purchase, which has no query.
fn purchase(more: Value) -> Value {
    let event = json!({
        "action_name": "purchase", "client_id": "c-17", "timestamp": rfc3339(START_MS),
        "event_attributes": {"object": {"object_id": "d3"}, "value": 49.9},
    });
    with(event, more)
}

/// The results of events, and the number of log entries that they added.
async fn send(server: &Server, events: &[Value]) -> (Vec<Value>, u64) {
    let before = server.position("shop").await;
    let body = json!({ "events": events });
    let answer = server.post("/v1/experiments/shop/feedback/ubi", &body).await.json(200);
    let results = answer["results"].as_array().expect("a list").clone();
    (results, server.position("shop").await - before)
}

async fn an_event_with_the_name_of_orders_is_an_order(database: TestDatabase) {
    let decide_by = json!({"event": "purchase", "window_seconds": 3600, "by": "money", "cap": 100});
    // a policy without self-duels, whose numbers would be entries of the log
    let shop = json!({
        "name": "shop", "rankers": ["bm25", "neural"], "policy": {"kind": "savage"},
        "decide_by": decide_by,
    });
    let server = Server::start(database.store().await).await;
    server.post("/v1/experiments", &shop).await.json(201);
    let rankings = json!({"bm25": ["d1", "d2"], "neural": ["d3", "d4"]});
    let page = json!({"unit": "c-17", "rankings": rankings, "length": 4});
    let duel = server.post("/v1/experiments/shop/next-duel", &page).await.json(200);
    let click = json!({
        "action_name": "click", "client_id": "c-17", "query_id": duel["duel_id"],
        "event_attributes": {"object": {"object_id": "d3"}},
    });
    let of = |attributes: Value| purchase(json!({ "event_attributes": attributes }));
    let object = json!({"object_id": "d3"});
    let events = [
        json!({"action_name": "view"}),
        purchase(json!({})),
        click,
        purchase(json!({"query_id": "unknown", "session_id": "s"})),
        purchase(json!({"client_id": 17})),
        of(json!({"object": object, "value": 5, "order_id": 1009})),
        of(json!({"object": object, "value": 6, "order_id": "1009"})),
        purchase(json!({"client_id": null})),
        purchase(json!({"timestamp": null})),
        purchase(json!({"timestamp": "yesterday"})),
        of(json!({"value": 5})),
        of(json!({"object": object})),
        of(json!({"object": object, "value": "5"})),
        of(json!([])),
    ];
    let (results, added) = send(&server, &events).await;
    let statuses: Vec<_> =
        results.iter().map(|it| it["status"].as_str().expect("a status")).collect();
    let wanted = [
        "ignored",
        "recorded",
        "recorded",
        "duplicate",
        "recorded",
        "recorded",
        "conflict",
        "invalid",
        "invalid",
        "invalid",
        "invalid",
        "invalid",
        "invalid",
        "invalid",
    ];
    assert_eq!(statuses, wanted, "{results:#?}");
    assert_eq!(added, 4);
    for (at, part) in [
        (6, "another content has this `order_id`"),
        (7, "the order has no `unit`"),
        (8, "`at` is missing"),
        (9, "`at` is `yesterday`"),
        (10, "the order has no document"),
        (11, "`value` is missing"),
        (12, "event_attributes"),
        (13, "the order has no document"),
    ] {
        let detail = results[at]["detail"].as_str().expect("a detail");
        assert!(detail.contains(part), "{at}: {detail}");
    }
    // the whole stream once more
    let (again, added) = send(&server, &events).await;
    assert_eq!(added, 0, "{again:#?}");
    for (at, result) in again.iter().enumerate() {
        let status = if statuses[at] == "recorded" { "duplicate" } else { statuses[at] };
        assert_eq!(result["status"], status, "{at}: {result}");
    }
}

async fn without_decide_by_it_is_ignored(database: TestDatabase) {
    let shop = json!({"name": "shop", "rankers": ["bm25", "neural"]});
    let server = Server::running(&database, &shop).await;
    let (results, added) = send(&server, &[purchase(json!({}))]).await;
    assert_eq!((&results[0]["status"], added), (&json!("ignored"), 0), "{results:#?}");
}
