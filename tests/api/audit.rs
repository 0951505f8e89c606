//! The audit log records who made each change.

use rankduel::http::{ProblemKind, ShellSettings};
use rankduel_engine::access::ApiKeys;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, JSON};
use crate::support::service::{Server, Settings};

on_both_databases! {
    every_change_of_an_experiment_is_in_the_audit_log
    the_audit_log_is_paginated
}

const KEY: &str = "correct-horse-battery-staple";

async fn audit(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/audit{query}")).await.json(200)
}

async fn every_change_of_an_experiment_is_in_the_audit_log(database: TestDatabase) {
    let shell = ShellSettings { keys: ApiKeys::parse(KEY).unwrap(), ..ShellSettings::default() };
    let server =
        Server::with(database.store().await, Settings { shell, ..Settings::default() }).await;
    let bearer = format!("Bearer {KEY}");
    let call = async |method: &str, path: &str, body: Value| {
        let headers =
            [JSON, ("authorization", &bearer), ("if-match", "*"), ("x-request-id", "by-hand")];
        server.send(method, path, &headers, body.to_string().into_bytes()).await
    };
    let search = json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "uniform"}});
    for (method, path, body, status) in [
        ("POST", "/v1/experiments", search.clone(), 201),
        ("POST", "/v1/experiments", search, 200), // exists: no change
        ("PATCH", "/v1/experiments/search", json!({"status": "paused"}), 200),
        ("PATCH", "/v1/experiments/search", json!({"status": "paused"}), 200), // no change
        ("PATCH", "/v1/experiments/search", json!({"status": "concluded", "winner": "b"}), 200),
        ("DELETE", "/v1/experiments/search", json!({}), 204),
    ] {
        let answer = call(method, path, body).await;
        assert_eq!(answer.status, status, "{}: {}", answer.request, answer.text());
    }
    let page = call("GET", "/v1/audit?experiment=search", json!({})).await.json(200);
    let entries = page["entries"].as_array().unwrap();
    let changes: Vec<_> = entries
        .iter()
        .map(|entry| (entry["what"].as_str().unwrap(), &entry["before"], &entry["after"]))
        .collect();
    let [running, paused] = ["running", "paused"].map(|status| json!({"status": status}));
    let open = json!({"status": "paused", "winner": null});
    let concluded = json!({"status": "concluded", "winner": "b"});
    let [listed, archived] = [false, true].map(|archived| json!({"archived": archived}));
    assert_eq!(
        changes[..3],
        [
            ("experiment-archived", &listed, &archived),
            ("experiment-changed", &open, &concluded),
            ("experiment-changed", &running, &paused),
        ]
    );
    assert_eq!(changes.len(), 4, "a request that changed nothing is in the log: {page}");
    let (what, before, after) = changes[3];
    assert_eq!((what, before), ("experiment-created", &Value::Null));
    assert_eq!(after["rankers"][1]["id"], "b", "{after}");
    for entry in entries {
        let who = entry["who"].as_str().unwrap();
        assert!(who.strip_prefix("key:").is_some_and(|id| id.len() == 8), "{who}");
        assert!(!entry.to_string().contains(KEY));
        assert_eq!(entry["request_id"], "by-hand");
        assert_eq!(entry["at"], "2026-09-21T14:13:20.000Z");
        assert_eq!((&entry["subject"], &entry["experiment"]), (&json!("search"), &json!("search")));
    }
}

async fn the_audit_log_is_paginated(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for number in 0..5 {
        server.create(&json!({"name": format!("e{number}"), "rankers": ["a", "b"]})).await;
    }
    let (mut query, mut seen) = ("?limit=2".to_owned(), Vec::new());
    loop {
        let page = audit(&server, &query).await;
        seen.extend(
            page["entries"].as_array().unwrap().iter().map(|entry| entry["subject"].clone()),
        );
        assert!(page["entries"].as_array().unwrap().iter().all(|entry| entry["who"] == "anyone"));
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?limit=2&cursor={next}");
    }
    assert_eq!(seen, ["e4", "e3", "e2", "e1", "e0"]);
    assert_eq!(audit(&server, "?experiment=e3").await["entries"].as_array().unwrap().len(), 1);
    assert_eq!(audit(&server, "?experiment=nobody").await, json!({"entries": [], "next": null}));
    for wrong in [
        "?limit=0",
        "?limit=501",
        "?cursor=x",
        "?cursor=",
        "?experiment=%00",
        "?since=1",
        "?limit=x",
    ] {
        server.get(&format!("/v1/audit{wrong}")).await.problem(ProblemKind::InvalidRequest);
    }
}
